"""What an expression is made of, as the parser reads it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa


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
