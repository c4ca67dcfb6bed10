"""What an expression is made of, as the parser reads it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import NamedTuple

import pyarrow as pa

from changes.model.types import MAX_PRECISION


class ExpressionError(ValueError):
    """An expression that can't be understood, or whose types don't fit: why, in one line."""


@dataclass(frozen=True, slots=True)
class Literal:
    """A value that stands in the text. ``type`` null: NULL."""

    value: object
    type: pa.DataType


@dataclass(frozen=True, slots=True)
class ColumnRef:
    """A column of the source, by its name without regard to case."""

    name: str


@dataclass(frozen=True, slots=True)
class Call:
    """An operator or a function, in small letters, with its arguments."""

    name: str
    args: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Case:
    """CASE: the value of the first condition that holds, else the default."""

    branches: tuple[tuple[Node, Node], ...]
    default: Node


@dataclass(frozen=True, slots=True)
class Cast:
    """CAST: the same value as another type, or an error."""

    arg: Node
    words: str
    type: pa.DataType


Node = Literal | ColumnRef | Call | Case | Cast

NULL = Literal(None, pa.null())


def parts_of(node: Node) -> Iterator[Node]:
    """The node and all below it."""
    yield node
    match node:
        case Call(_, args):
            children = args
        case Case(branches, default):
            children = (*(part for pair in branches for part in pair), default)
        case Cast(arg):
            children = (arg,)
        case _:
            children = ()
    for child in children:
        yield from parts_of(child)


# The words, signs and literals of an expression's text.

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<number>[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?)
    | (?P<text>'(?:[^']|'')*')
    | (?P<quoted>"(?:[^"]|"")+"|`(?:[^`]|``)+`)
    | (?P<word>[^\W\d]\w*)
    | (?P<sign>\|\||<>|!=|<=|>=|[-+*/%=<>(),])
    )""",
    re.X,
)
RESERVED = frozenset(
    ("and", "or", "not", "is", "null", "in", "between", "like", "case", "when", "then", "else")
) | {"end", "cast", "as", "true", "false", "div"}


class ExpressionToken(NamedTuple):
    kind: str
    text: str

    @property
    def word(self) -> str:
        """A keyword in small letters; empty for all else."""
        return self.text.lower() if self.kind in ("word", "sign") else ""


END = ExpressionToken("end", "the end")


def tokens_of(text: str) -> Iterator[ExpressionToken]:
    at, end = 0, len(text.rstrip())
    while at < end:
        found = _TOKEN.match(text, at)
        if found is None or found.lastgroup is None:
            raise ExpressionError(f"{text[at:].strip()[:20]!r} is not understood")
        yield ExpressionToken(found.lastgroup, found[found.lastgroup])
        at = found.end()


def number(text: str) -> Literal:
    """A whole number, a decimal with all its digits, or with an exponent a double."""
    if "e" in text.lower():
        return Literal(float(text), pa.float64())
    value = Decimal(text)
    scale = len(text.partition(".")[2])
    if "." not in text and abs(value) < 2**63:
        return Literal(int(value), pa.int64())
    precision = max(len(value.as_tuple().digits), scale + 1)
    if precision > MAX_PRECISION:
        raise ExpressionError(f"{text} has more than {MAX_PRECISION} digits")
    return Literal(value, pa.decimal128(precision, scale))
