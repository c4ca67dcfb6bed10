"""Filters rows, and computes columns of them, from the source's names and raw values.

The row after a change decides: where the filter is true it is written, where it is false or NULL
its key is deleted, whether or not it was there. A delete, and the old key of a move, stay deletes.
Rows that lack what decides are left to ``changes.routes.shaping.partial``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from changes.formats.engine.format import RowChange
from changes.model.model import (
    HAS_PREFIX,
    OP,
    POSITION,
    BadRecord,
    Changes,
    Column,
    Mode,
    TableSchema,
)
from changes.routes.expressions.expression import BadValue, Bound, Expression
from changes.routes.expressions.syntax import ExpressionError
from changes.routes.expressions.types import NamedColumns, placed, words_of
from changes.routes.shaping.changelog import filtered_changelog, filtered_history
from changes.routes.shaping.names import ShapeRefused
from changes.routes.shaping.partial import (
    check_carried,
    check_inserts,
    check_partial,
    with_left,
    with_own_time,
)
from changes.routes.shaping.shape import Shape
from settings.counted import counted

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
    computes: tuple[str, ...] = ()
    """Those that the computed columns need."""
    history: bool = False
    """Whether each version of a row stays."""
    stored: bool = False
    """Whether the target's rows have what the filter needs."""

    @property
    def added(self) -> tuple[Column, ...]:
        """The computed columns."""
        return tuple(Column(name, bound.type) for name, bound in self.computed)

    def filtered(
        self, changes: Changes, old: Set[str], images: Callable[[int], Sequence[RowChange]]
    ) -> Changes:
        """The changes, rows that the filter leaves out as ``LEFT``; a changelog without them.

        ``old`` are columns that the target had before, ``images`` what a record says of its rows.
        Raises BadRecord for a row without a result, ShapeRefused for rows that lack what is needed.
        """
        if changes.mode is Mode.APPEND:
            if self.filter is None:
                return changes
            found = filtered_changelog(changes, self.filters, self._passes, images)
            check_inserts(changes, self.filters)
            return found
        if self.filter is None:
            check_carried(changes.table, self.uses)
            return changes
        if self.history or POSITION in changes.table.column_names:
            check_carried(changes.table, self.uses, self.shown, old)
        else:
            check_carried(changes.table, self.computes)
            table = with_own_time(changes, self.shown, self.filters, old)
            check_partial(changes, table, self, old)
            changes = replace(changes, table=table)
        check_inserts(changes, self.filters)
        if self.history:
            return filtered_history(changes, self.filters, self._passes, images)
        return self._decided(changes)

    def _decided(self, changes: Changes) -> Changes:
        """Rows that the filter leaves out, as far as they have what it needs."""
        assert self.filter is not None
        table = changes.table
        known = _alive(table)
        for name in self.filters:
            if HAS_PREFIX + name in table.column_names:
                has = table[HAS_PREFIX + name].combine_chunks()
                known = has if known is None else pc.and_(known, has)
        passes = pc.fill_null(self._of_rows(changes, "filter", self.filter, known), False)
        leaves = pc.invert(passes) if known is None else pc.and_not(known, passes)
        if not pc.any(leaves).as_py():
            return changes
        return replace(changes, table=with_left(table, leaves))

    def _passes(self, columns: Mapping[str, pa.Array], records: Sequence[int]) -> pa.Array:
        assert self.filter is not None
        try:
            return self.filter.values(NamedColumns(columns, len(records)))
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
                    f"computed.{name} makes {column.nbytes} bytes of "
                    f"{counted(len(column), 'row')}; {LARGEST_BYTES} are allowed"
                )
            found.append((name, pa.chunked_array([column])))
        return found

    def _of_rows(
        self, changes: Changes, key: str, bound: Bound, alive: pa.Array | None
    ) -> pa.Array:
        """An expression's values of the rows that are alive (None: all), NULL for the others."""
        table = changes.table
        columns = {name.lower(): table[name].combine_chunks() for name in self.uses}
        rows = NamedColumns(columns, table.num_rows)
        try:
            if alive is None:
                return bound.values(rows)
            values = bound.values(rows.where(alive))
            return placed(pa.nulls(rows.count, bound.type), alive, values)
        except BadValue as bad:
            at = bad.row if alive is None else pc.indices_nonzero(alive)[bad.row].as_py()
            assert changes.origins is not None
            raise BadRecord(changes.origins.records[at], f"{key}: {bad.reason}") from bad


def _alive(table: pa.Table) -> pa.Array | None:
    """The rows that are not deletes; None where all are."""
    alive = pc.equal(table[OP].combine_chunks(), "U")
    return None if pc.all(alive).as_py() else alive


def compute_of(shape: Shape, schema: TableSchema, shown: Mapping[str, object]) -> Compute:
    """Check a shape's expressions against the source's columns. Raises ShapeRefused."""
    types = {column.name.lower(): column.type for column in schema.columns}
    condition = _bound("filter", shape.filter, types) if shape.filter else None
    if condition is not None and not pa.types.is_boolean(condition.type):
        raise ShapeRefused(f"filter: a condition is required, not {words_of(condition.type)}")
    computed = tuple(
        (name, _bound(f"computed.{name}", text, types)) for name, text in shape.computed
    )
    needed = shape.computes_with
    uses = tuple(column.name for column in schema.columns if column.name.lower() in needed)
    asks = Expression(shape.filter).columns if condition else frozenset[str]()
    makes = frozenset[str]().union(*(Expression(text).columns for _, text in shape.computed))
    return Compute(
        condition, computed, uses, tuple(shown),
        filters=tuple(name for name in uses if name.lower() in asks),
        computes=tuple(name for name in uses if name.lower() in makes),
        history=shape.history,
        stored=shape.row_filter is not None and shape.row_filter.is_stored,
    )  # fmt: skip


def _bound(key: str, text: str, types: Mapping[str, pa.DataType]) -> Bound:
    try:
        return Expression(text).bind(types)
    except ExpressionError as error:
        raise ShapeRefused(f"{key}: {error}") from error
