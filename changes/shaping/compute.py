"""Filters rows, and computes columns of them, from the source's names and raw values.

The row after a change decides: where the filter is true it is written, where it is false or NULL
its key is deleted, whether or not it was there. A delete, and the old key of a move, stay deletes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from changes.expressions.expression import BadValue, Bound, Expression
from changes.expressions.rows import Rows, placed
from changes.expressions.syntax import ExpressionError
from changes.expressions.types import words_of
from changes.formats.base import RowChange
from changes.model import HAS_PREFIX, OP, BadRecord, Changes, Column, Mode, TableSchema
from changes.shaping.changelog import filtered_changelog
from changes.shaping.entering import filtered_history
from changes.shaping.refused import ShapeRefused
from changes.shaping.shape import Shape

LARGEST_BYTES = 256 << 20
"""Of a computed column of one batch."""


@dataclass(frozen=True, slots=True)
class Compute:
    """The expressions of a shape over known columns. ``uses`` are those that they need, ``shown``
    those that the target shows of the source's."""

    filter: Bound | None
    computed: tuple[tuple[str, Bound], ...]
    uses: tuple[str, ...]
    shown: tuple[str, ...]
    filters: tuple[str, ...] = ()
    """Those that the filter needs."""
    history: bool = False
    """Whether each version of a row stays."""

    @property
    def added(self) -> tuple[Column, ...]:
        """The computed columns."""
        return tuple(Column(name, bound.type) for name, bound in self.computed)

    def filtered(
        self, changes: Changes, old: Set[str], images: Callable[[int], Sequence[RowChange]]
    ) -> Changes:
        """The changes, rows that the filter leaves out as deletes; a changelog without them.

        ``old`` are columns that the target had before, ``images`` what a record says of its rows.
        Raises BadRecord for a row without a result, ShapeRefused for rows that lack what is needed.
        """
        if changes.mode is Mode.UPSERT:
            self._check_carried(changes, old)
        if self.filter is None:
            return changes
        if changes.mode is Mode.APPEND:
            return filtered_changelog(changes, self.filters, self._passes, images)
        if self.history:
            return filtered_history(changes, self.filters, self._passes, images)
        table = changes.table
        alive = _alive(table)
        passes = self._of_rows(changes, "filter", self.filter, alive)
        stays = pc.fill_null(passes, False)
        if pc.all(stays if alive is None else pc.or_(stays, pc.invert(alive))).as_py():
            return changes
        ops = pc.if_else(stays, "U", "D")
        table = table.set_column(table.schema.get_field_index(OP), OP, ops)
        return replace(changes, table=_carried(table, stays))

    def _passes(self, columns: Mapping[str, pa.Array], records: Sequence[int]) -> pa.Array:
        assert self.filter is not None
        try:
            return self.filter.values(Rows(columns, len(records)))
        except BadValue as bad:
            raise BadRecord(records[bad.row], f"filter: {bad.reason}") from bad

    def columns(self, changes: Changes) -> list[tuple[str, pa.ChunkedArray]]:
        """The computed columns, NULL in rows that delete. Raises as ``filtered``."""
        alive = _alive(changes.table) if changes.mode is Mode.UPSERT and self.computed else None
        found = []
        for name, bound in self.computed:
            column = self._of_rows(changes, f"computed.{name}", bound, alive)
            if column.nbytes > LARGEST_BYTES:
                raise ShapeRefused(
                    f"computed.{name} makes {column.nbytes} bytes of {len(column)} rows; "
                    f"{LARGEST_BYTES} are allowed"
                )
            found.append((name, pa.chunked_array([column])))
        return found

    def _of_rows(
        self, changes: Changes, key: str, bound: Bound, alive: pa.Array | None
    ) -> pa.Array:
        """An expression's values of the rows that are alive (None: all), NULL for the others."""
        table = changes.table
        columns = {name.lower(): table[name].combine_chunks() for name in self.uses}
        rows = Rows(columns, table.num_rows)
        try:
            if alive is None:
                return bound.values(rows)
            values = bound.values(rows.where(alive))
            return placed(pa.nulls(rows.count, bound.type), alive, values)
        except BadValue as bad:
            at = bad.row if alive is None else pc.indices_nonzero(alive)[bad.row].as_py()
            assert changes.origins is not None
            raise BadRecord(changes.origins.records[at], f"{key}: {bad.reason}") from bad

    def _check_carried(self, changes: Changes, old: Set[str]) -> None:
        """Refuse rows that lack what an expression needs; with a filter, what the target shows:
        a row that enters would be NULL there."""
        table = changes.table
        for name in dict.fromkeys((*self.uses, *(self.shown if self.filter else ()))):
            flag = HAS_PREFIX + name
            if flag not in table.column_names:
                continue
            lacks = pc.invert(table[flag].combine_chunks())
            if name not in self.uses and name not in old:
                # Rows of before the first one that has the column are of a table without it.
                first = pc.index(lacks, False).as_py()
                lacks = lacks.slice(max(first, 0))
            if pc.any(lacks).as_py():
                why = "an expression uses it" if name in self.uses else "a filter needs whole rows"
                raise ShapeRefused(
                    f"rows come without column {name}, and {why}: have the source send whole rows "
                    "(binlog_row_image = FULL, REPLICA IDENTITY FULL)"
                )


def _alive(table: pa.Table) -> pa.Array | None:
    """The rows that are not deletes; None where all are."""
    ops = table[OP].combine_chunks()
    return pc.equal(ops, "U") if pc.index(ops, "D").as_py() >= 0 else None


def _carried(table: pa.Table, stays: pa.Array) -> pa.Table:
    """The table, rows that are deletes carrying all columns."""
    gone = pc.invert(stays)
    for place, name in enumerate(table.column_names):
        if name.startswith(HAS_PREFIX):
            table = table.set_column(place, name, pc.or_(table[name], gone))
    return table


def compute_of(shape: Shape, schema: TableSchema, shown: Mapping[str, object]) -> Compute:
    """Check a shape's expressions against the source's columns. Raises ShapeRefused."""
    types = {column.name.lower(): column.type for column in schema.columns}
    condition = _bound("filter", shape.filter, types) if shape.filter else None
    if condition is not None and not pa.types.is_boolean(condition.type):
        raise ShapeRefused(f"filter: a condition is wanted, not {words_of(condition.type)}")
    computed = tuple(
        (name, _bound(f"computed.{name}", text, types)) for name, text in shape.computed
    )
    needed = shape.computes_with
    uses = tuple(column.name for column in schema.columns if column.name.lower() in needed)
    asks = {name.lower() for name in Expression(shape.filter).columns} if condition else set[str]()
    filters = tuple(name for name in uses if name.lower() in asks)
    return Compute(condition, computed, uses, tuple(shown), filters, shape.history)


def _bound(key: str, text: str, types: Mapping[str, pa.DataType]) -> Bound:
    try:
        return Expression(text).bind(types)
    except ExpressionError as error:
        raise ShapeRefused(f"{key}: {error}") from error
