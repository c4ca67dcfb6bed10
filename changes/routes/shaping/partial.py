"""Which rows may lack columns under a shape: what is missing did not change, or was not there."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from changes.formats.engine.assemble import letters
from changes.model.model import FROM, FROM_PREFIX, HAS_PREFIX, LEFT, OP, Changes
from changes.routes.expressions.expression import BadValue, Expression
from changes.routes.expressions.types import NamedColumns
from changes.routes.shaping.names import ShapeRefused

_HINT = "have the source send whole rows (binlog_row_image = FULL, REPLICA IDENTITY FULL)"


def check_carried(
    table: pa.Table, uses: Sequence[str], shown: Sequence[str] = (), old: Set[str] = frozenset()
) -> None:
    """Refuse rows that lack what an expression needs, or what the target shows: ``shown`` where a
    row that enters would be NULL there. ``old`` are columns that the target had before."""
    for name in dict.fromkeys((*uses, *shown)):
        lacks = _lacks(table, name)
        if lacks is None:
            continue
        if name not in uses and name not in old:
            lacks = lacks.slice(max(_first(table, name), 0))
        if pc.any(lacks).as_py():
            raise _refused(
                name, "an expression uses it" if name in uses else "a filter needs whole rows"
            )


def check_inserts(changes: Changes, uses: Sequence[str]) -> None:
    """Refuse inserts that left out what a filter uses, also where they look like nulls: writers
    that leave nulls out leave out defaults as well (MINIMAL)."""
    if changes.carried is not None:
        for name in uses:
            if name not in changes.carried:
                raise _refused(name, "the filter uses it")


def with_own_time(
    changes: Changes, shown: Sequence[str], uses: Sequence[str], old: Set[str]
) -> pa.Table:
    """The table. Rows before the first one with a column have NULL there, if they had all columns
    of their time: inserts have, and so have updates with all that the target had before."""
    table = changes.table
    whole = _inserts(changes)
    if old:
        had = pa.repeat(pa.scalar(True), table.num_rows)
        for name in old:
            if (lacks := _lacks(table, name)) is not None:
                had = pc.and_not(had, lacks)
        whole = pc.or_(whole, had)
    for name in shown:
        lacks = _lacks(table, name)
        if lacks is None or name in old or name in uses:
            continue
        first = _first(table, name)
        before = pa.array(range(table.num_rows), pa.int64())
        has = pc.or_(pc.invert(lacks), pc.and_(pc.less(before, first), whole))
        place = table.schema.get_field_index(HAS_PREFIX + name)
        table = table.set_column(place, HAS_PREFIX + name, has)
    return table


class Needs(Protocol):
    """What a filter needs of rows: the columns that the target shows, those that the filter uses,
    and whether the target's rows have these."""

    @property
    def shown(self) -> Sequence[str]: ...

    @property
    def filters(self) -> Sequence[str]: ...

    @property
    def stored(self) -> bool: ...


def check_partial(changes: Changes, table: pa.Table, needs: Needs, old: Set[str]) -> None:
    """Refuse rows that lack what no stored row could tell. ``table`` and ``old`` as of
    ``with_own_time``."""
    for name in dict.fromkeys((*needs.filters, *needs.shown)):
        lacks = _lacks(table, name)
        if lacks is None or not pc.any(lacks).as_py():
            continue
        decides = name in needs.filters
        if decides and not needs.stored:
            raise _refused(name, "the filter uses it, and the target does not show it as it is")
        if pc.any(pc.and_(lacks, _inserts(changes))).as_py():
            raise _refused(name, "a filter needs whole rows")
        if decides and name not in old:
            first = _first(table, name)
            if pc.any(lacks.slice(0, None if first < 0 else first)).as_py():
                raise _refused(name, "the filter uses it, and its value in these rows is unknown")


def _inserts(changes: Changes) -> pa.Array:
    assert changes.origins is not None
    return pc.equal(letters(changes.origins.ops), "I")


def _lacks(table: pa.Table, name: str) -> pa.Array | None:
    """Of each row whether it lacks the column, None where all have it."""
    flag = HAS_PREFIX + name
    return pc.invert(table[flag].combine_chunks()) if flag in table.column_names else None


def _first(table: pa.Table, name: str) -> int:
    """The first row, not a delete, that has the column; -1 where none has."""
    has = table[HAS_PREFIX + name].combine_chunks()
    return int(pc.index(pc.and_(has, pc.equal(table[OP].combine_chunks(), "U")), True).as_py())


def _refused(name: str, why: str) -> ShapeRefused:
    return ShapeRefused(f"rows come without column {name}, and {why}: {_HINT}")


# A filter over rows that lack columns, as updates do whose images are partial (MINIMAL, TOAST).


@dataclass(frozen=True, slots=True)
class RowFilter:
    """The filter of a route. ``columns``: those that it uses, in small letters, each with its name
    in the target; none where one of them is not shown as it is."""

    text: str
    columns: tuple[tuple[str, str], ...] = ()

    @property
    def is_stored(self) -> bool:
        """Whether the target's rows have what it uses."""
        return bool(self.columns)

    def carried(self, table: pa.Table) -> pa.Array:
        """Of each row whether it has all that the filter uses."""
        return _all_of(table, [name for _, name in self.columns])

    def passes(self, table: pa.Table) -> pa.Array:
        """Of each row whether the filter is true. Raises ShapeRefused where it has no result."""
        columns = {of: table[name].combine_chunks() for of, name in self.columns}
        bound = Expression(self.text).bind({of: column.type for of, column in columns.items()})
        try:
            return pc.fill_null(bound.values(NamedColumns(columns, table.num_rows)), False)
        except BadValue as bad:
            raise ShapeRefused(f"filter: {bad.reason}, in a row that was completed") from bad


def as_whole(tables: Sequence[pa.Table]) -> list[pa.Table]:
    """Pieces of one target, in order: rows that had all columns of their time have NULL in those
    that a later piece brings."""
    types = {field.name: field.type for table in tables for field in table.schema}
    own = {name for name in types if name.startswith((HAS_PREFIX, FROM_PREFIX)) or name == FROM}
    found = []
    for table in tables:
        new = [name for name in types if name not in own and name not in table.column_names]
        if new and table.num_rows:
            here = [name for name in table.column_names if HAS_PREFIX + name in table.column_names]
            whole = pc.or_(_all_of(table, here), pc.equal(table[OP], "D").combine_chunks())
            for name in new:
                table = table.append_column(name, pa.nulls(table.num_rows, types[name]))
                table = table.append_column(HAS_PREFIX + name, whole)
        found.append(table)
    return found


def redecided(table: pa.Table, filter_: RowFilter) -> pa.Table:
    """Folded rows, after the filter wherever they have what it uses: the fold may have completed
    them. Raises ShapeRefused."""
    if not filter_.is_stored or any(name not in table.column_names for _, name in filter_.columns):
        return table
    known = pc.and_(pc.equal(table[OP], "U").combine_chunks(), filter_.carried(table))
    leaves = pc.invert(filter_.passes(table.filter(known)))
    return with_left(table, pc.replace_with_mask(pa.repeat(False, len(known)), known, leaves))


def with_left(table: pa.Table, leaves: pa.Array) -> pa.Table:
    """The table, these rows being left out."""
    ops = pc.if_else(leaves, LEFT, table[OP])
    return table.set_column(table.schema.get_field_index(OP), OP, ops)


def as_deletes(table: pa.Table) -> pa.Table:
    """The table, rows that are left out as the deletes that they are to a target."""
    gone = pc.not_equal(table[OP], "U")
    for place, name in enumerate(table.column_names):
        if name == OP:
            table = table.set_column(place, name, pc.if_else(gone, "D", "U"))
        elif name == FROM or name.startswith(FROM_PREFIX):
            none = pa.scalar(None, table[name].type)
            table = table.set_column(place, name, pc.if_else(gone, none, table[name]))
        elif name.startswith(HAS_PREFIX):
            table = table.set_column(place, name, pc.or_(table[name], gone))
    return table


def _all_of(table: pa.Table, names: Sequence[str]) -> pa.Array:
    found = pa.repeat(pa.scalar(True), table.num_rows)
    for name in names:
        if HAS_PREFIX + name in table.column_names:
            found = pc.and_(found, table[HAS_PREFIX + name].combine_chunks())
    return found
