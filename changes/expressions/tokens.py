"""The words, signs and literals of an expression's text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import NamedTuple

import pyarrow as pa

from changes.expressions.syntax import ExpressionError, Literal
from changes.types import MAX_PRECISION

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


class Token(NamedTuple):
    kind: str
    text: str

    @property
    def word(self) -> str:
        """A keyword in small letters; empty for all else."""
        return self.text.lower() if self.kind in ("word", "sign") else ""


END = Token("end", "the end")


def tokens_of(text: str) -> Iterator[Token]:
    at, end = 0, len(text.rstrip())
    while at < end:
        found = _TOKEN.match(text, at)
        if found is None or found.lastgroup is None:
            raise ExpressionError(f"{text[at:].strip()[:20]!r} is not understood")
        yield Token(found.lastgroup, found[found.lastgroup])
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
