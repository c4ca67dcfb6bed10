"""A filter over rows that lack columns, as updates do whose images are partial (MINIMAL, TOAST).

What decides may be known only once the rows of a batch are folded, or once the stored row is. Until
then such a row goes on as ``U``. A row that the filter leaves out is ``LEFT``: it has its values,
for a later row of its key may need them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from changes.expressions.expression import BadValue, Expression
from changes.expressions.rows import Rows
from changes.model import FROM, FROM_PREFIX, HAS_PREFIX, LEFT, OP
from changes.shaping.refused import ShapeRefused


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
            return pc.fill_null(bound.values(Rows(columns, table.num_rows)), False)
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
