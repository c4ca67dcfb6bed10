"""An expression of the configuration: read once, checked against a table's columns, computed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from changes.routes.expressions.functions import check_call, function
from changes.routes.expressions.parser import parse
from changes.routes.expressions.syntax import (
    Call,
    Case,
    Cast,
    ColumnRef,
    ExpressionError,
    Literal,
    Node,
    parts_of,
)
from changes.routes.expressions.types import (
    LARGEST_BYTES,
    NamedColumns,
    ResultTooLarge,
    Typed,
    Value,
    alike,
    cast,
    constant,
    placed,
    spread,
    words_of,
)


class BadValue(Exception):
    """A row for which the expression has no result: its place, and why."""

    def __init__(self, row: int, reason: str) -> None:
        super().__init__(reason)
        self.row = row
        self.reason = reason


class Expression:
    """A text that was understood. Raises ExpressionError where it is not."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._node = parse(text)
        for part in parts_of(self._node):
            if isinstance(part, Call):
                check_call(part.name, len(part.args))

    @cached_property
    def columns(self) -> frozenset[str]:
        """The columns that it uses, in small letters."""
        refs = (part for part in parts_of(self._node) if isinstance(part, ColumnRef))
        return frozenset(ref.name.lower() for ref in refs)

    def bind(self, types: Mapping[str, pa.DataType]) -> Bound:
        """Check it against columns, by their names in small letters. Raises ExpressionError."""
        typed = _typed(self._node, types)
        if pa.types.is_null(typed.type):
            raise ExpressionError("it is always NULL")
        return Bound(typed.type, typed.run)


@dataclass(frozen=True, slots=True)
class Bound:
    """An expression over known columns."""

    type: pa.DataType
    run: Callable[[NamedColumns], Value]

    def values(self, rows: NamedColumns) -> pa.Array:
        """The expression's value of each row. Raises BadValue for the first that has none."""
        return pa.concat_arrays(self._values(rows, 0)) if rows.count else pa.array([], self.type)

    def _values(self, rows: NamedColumns, start: int) -> list[pa.Array]:
        """In halves where a row is in error, or all are too large at once."""
        try:
            return [spread(self.run(rows), rows.count)]
        except (pa.ArrowInvalid, ResultTooLarge) as error:
            if rows.count == 1:
                raise BadValue(start, _reason(error)) from error
        half = rows.count // 2
        found = self._values(rows.part(0, half), start)
        return found + self._values(rows.part(half, rows.count - half), start + half)


def _reason(error: Exception) -> str:
    if isinstance(error, ResultTooLarge):
        return f"its text is larger than {LARGEST_BYTES} bytes"
    text = " ".join(str(error).split())
    return "division by zero" if text.lower().startswith("divide by zero") else text


def _typed(node: Node, types: Mapping[str, pa.DataType]) -> Typed:
    match node:
        case Literal(value, type_):
            return constant(value, type_)
        case ColumnRef(name):
            lower = name.lower()
            if lower not in types:
                raise ExpressionError(f"there is no column {name}")
            return Typed(types[lower], lambda rows: rows.columns[lower])
        case Call(name, args):
            return function(name, [_typed(arg, types) for arg in args])
        case Cast(arg, _, type_):
            return cast(_typed(arg, types), type_)
        case Case():
            return _case(node, types)


def _case(node: Case, types: Mapping[str, pa.DataType]) -> Typed:
    """A branch is computed for its own rows alone: it may guard against what has no result."""
    conditions = [_typed(condition, types) for condition, _ in node.branches]
    for condition in conditions:
        if not pa.types.is_boolean(condition.type):
            raise ExpressionError(f"WHEN wants a condition, not {words_of(condition.type)}")
    values = [_typed(value, types) for _, value in node.branches]
    parts, type_ = alike([*values, _typed(node.default, types)], "CASE")
    *results, default = parts
    fails = any(part.fails for part in (*conditions, *parts))
    if not fails:
        return Typed(type_, lambda rows: _chosen(conditions, results, default, rows))

    def run(rows: NamedColumns) -> Value:
        found = pa.nulls(rows.count, type_)
        left = pa.repeat(pa.scalar(True), rows.count)
        for condition, result in zip(conditions, results, strict=True):
            part = rows.where(left)
            holds = pc.fill_null(spread(condition.run(part), part.count), False)
            hit = placed(pa.repeat(pa.scalar(False), rows.count), left, holds)
            found = _put(found, hit, result, rows)
            left = pc.and_(left, pc.invert(hit))
        return _put(found, left, default, rows)

    return Typed(type_, run, fails=True)


def _chosen(
    conditions: list[Typed], results: list[Typed], default: Typed, rows: NamedColumns
) -> pa.Array:
    """All branches at once: each has a value in every row."""
    found = [spread(condition.run(rows), rows.count) for condition in conditions]
    names = [str(place) for place in range(len(found))]
    holds = pc.make_struct(*found, field_names=names)
    return pc.case_when(holds, *(part.run(rows) for part in (*results, default)))


def _put(found: pa.Array, mask: pa.Array, result: Typed, rows: NamedColumns) -> pa.Array:
    part = rows.where(mask)
    return placed(found, mask, spread(result.run(part), part.count)) if part.count else found
