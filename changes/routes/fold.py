"""Folds a batch to its net changes: the final state of each key.

The order of the rows is the order of the changes. ``fold`` may be applied in parts: folding folded
pieces again, in order, has the same result as folding everything at once.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from changes.model.model import FROM, FROM_PREFIX, HAS_PREFIX, OP, KeyBound
from changes.model.positions import has_positions, in_source_order
from changes.model.types import widen
from changes.routes.fold_moves import settle

_GROUP = "group"
_PLACE = "place"


def fold(table: pa.Table, keys: Sequence[str]) -> pa.Table:
    """Keep one row per key, the last; null keys are equal.

    A row that lacks a column takes it from the key's earlier rows in the batch. After a D nothing
    stored remains: the columns that a later row lacks are known to be null. A presence column is
    dropped where all its rows are true. A row that came from another key takes columns from there;
    ``FROM`` stays where that key's stored row has the rest. Rows with positions are sorted by them
    first, so that the last row of a key is the last one in the source.
    """
    if has_positions(table):
        table = in_source_order(table)
    if table.num_rows == 0:
        return _without_full_flags(table)
    if FROM in table.column_names:
        return _fold_moves(table, keys)
    groups = _groups(table, keys)
    places = pa.array(range(table.num_rows), pa.int64())
    last = _last_places(groups, places)
    if len(last) == table.num_rows:
        return _without_full_flags(table)
    last = last.sort_by([(_PLACE, "ascending")])
    folded = table.take(last[_PLACE])
    partial = [name for name in partial_columns(table) if _lacks(folded, name)]
    if partial:
        folded = _completed_rows(table, folded, groups, last[_GROUP], partial)
    return _without_full_flags(folded)


def _fold_moves(table: pa.Table, keys: Sequence[str]) -> pa.Table:
    """Folds keys that took part in a move row by row, the others at once."""
    count = table.num_rows
    olds = [table[FROM_PREFIX + key].cast(table[key].type) for key in keys]
    both = [
        pa.chunked_array([*table[key].chunks, *old.chunks])
        for key, old in zip(keys, olds, strict=True)
    ]
    numbers = _groups(pa.table(both, names=list(keys)), keys)
    moves = pc.is_valid(table[FROM]).combine_chunks()
    old_numbers = pc.if_else(moves, numbers.slice(count), pa.scalar(None, numbers.type))
    settled, others = settle(table, keys, numbers.slice(0, count), old_numbers)
    origins = [FROM, *(FROM_PREFIX + key for key in keys)]
    rest = fold(table.filter(others).drop_columns(origins), keys)
    if settled[FROM].null_count == settled.num_rows:
        settled = settled.drop_columns(origins)
    # The settled rows first: their ``FROM`` must keep meaning "before row 0" of the target.
    return concat_changes([_without_full_flags(settled), rest])


def _lacks(table: pa.Table, name: str) -> bool:
    return not pc.all(table[HAS_PREFIX + name]).as_py()


def _completed_rows(
    table: pa.Table,
    folded: pa.Table,
    groups: pa.Array,
    order: pa.ChunkedArray,
    partial: Sequence[str],
) -> pa.Table:
    """Complete the last rows that lack a column from earlier rows of their key.

    ``order`` are the groups of ``folded``'s rows. Only the keys concerned are read: few rows of a
    batch may be partial.
    """
    concerned = pc.invert(folded[HAS_PREFIX + partial[0]])
    for name in partial[1:]:
        concerned = pc.or_(concerned, pc.invert(folded[HAS_PREFIX + name]))
    wanted = order.filter(concerned)
    rows = pc.is_in(groups, wanted)
    table, groups = table.filter(rows), groups.filter(rows)
    gone = pc.equal(table[OP], "D")
    mask = concerned.combine_chunks()
    for name in partial:
        values, carried = _inherited(table, name, groups, gone, wanted)
        for column, new in ((name, values), (HAS_PREFIX + name, carried)):
            old = folded[column].combine_chunks()
            folded = _replaced(folded, column, pc.replace_with_mask(old, mask, new))
    return folded


def _groups(table: pa.Table, keys: Sequence[str]) -> pa.Array:
    """Number the keys: equal keys get equal numbers."""
    numbers: pa.Array | None = None
    for key in keys:
        column = table[key]
        if pa.types.is_floating(column.type):
            column = pc.add(column, pa.scalar(0.0, column.type))  # -0.0 and 0.0 are one key
        codes, count = _codes(column)
        if numbers is None:
            numbers = codes
        else:
            numbers, _ = _codes(pc.add(pc.multiply(numbers, count), codes))
    if numbers is None:
        raise ValueError("net changes need a key")
    return numbers


def _codes(column: pa.Array) -> tuple[pa.Array, int]:
    """Number a column's distinct values, null being one. Both factors stay below 2^31."""
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    encoded = whole.dictionary_encode(null_encoding="encode")
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.unify_dictionaries().combine_chunks()
    return encoded.indices.cast(pa.int64()), len(encoded.dictionary)


def _last_places(groups: pa.Array, places: pa.Array) -> pa.Table:
    """Each group's highest place, as columns ``group`` and ``place``."""
    table = pa.table({_GROUP: groups, _PLACE: places})
    return table.group_by(_GROUP).aggregate([(_PLACE, "max")]).rename_columns([_GROUP, _PLACE])


def _inherited(
    table: pa.Table,
    name: str,
    groups: pa.Array,
    gone: pa.ChunkedArray,
    wanted: pa.ChunkedArray,
) -> tuple[pa.Array, pa.Array]:
    """A column's value for each group in ``wanted``: that of the last row that has it.

    A D has it as well: null.
    """
    tells = pc.or_(table[HAS_PREFIX + name], gone)
    places = pa.array(range(table.num_rows), pa.int64())
    last = _last_places(groups.filter(tells), places.filter(tells))
    source = last[_PLACE].take(pc.index_in(wanted, last[_GROUP])).combine_chunks()
    column = pc.if_else(gone, pa.scalar(None, table[name].type), table[name]).combine_chunks()
    return column.take(source), pc.is_valid(source)


def _replaced(table: pa.Table, name: str, values: pa.ChunkedArray) -> pa.Table:
    return table.set_column(table.schema.get_field_index(name), name, values)


def _without_full_flags(table: pa.Table) -> pa.Table:
    full = [
        HAS_PREFIX + name
        for name in partial_columns(table)
        if pc.all(table[HAS_PREFIX + name]).as_py() is not False
    ]
    return table.drop_columns(full) if full else table


def concat_changes(tables: Sequence[pa.Table]) -> pa.Table:
    """Concatenate pieces of one target, in order, with the columns and types of all of them.

    A column that a piece lacks was not carried by its rows; deletes carry all columns. Raises
    ValueError where there is no piece, or a column's types have no common one.
    """
    if not tables:
        raise ValueError("there is no piece to put together")
    if len(tables) == 1:
        return tables[0]
    if any(FROM in table.column_names for table in tables):
        tables = _renumbered(tables)
    if all(table.schema.equals(tables[0].schema) for table in tables):
        return pa.concat_tables(tables)
    types: dict[str, pa.DataType] = {}
    for table in tables:
        for field in table.schema:
            if not field.name.startswith(HAS_PREFIX):
                types[field.name] = _common(field.name, types.get(field.name), field.type)
    flagged = [name for name in types if OP in types and _is_partial(name, tables)]
    flagged = [name for name in flagged if name != FROM and not name.startswith(FROM_PREFIX)]
    return pa.concat_tables([_completed(table, types, flagged) for table in tables])


def _renumbered(tables: Sequence[pa.Table]) -> list[pa.Table]:
    """Make ``FROM`` count from the first row of all pieces."""
    start, found = 0, []
    for table in tables:
        if FROM in table.column_names:
            table = _replaced(table, FROM, pc.add(table[FROM], pa.scalar(start, pa.int64())))
        found.append(table)
        start += table.num_rows
    return found


def _common(name: str, stored: pa.DataType | None, seen: pa.DataType) -> pa.DataType:
    wider = seen if stored is None else widen(stored, seen) or widen(seen, stored)
    if wider is None:
        raise ValueError(f"column {name} is {stored} in one piece and {seen} in another")
    return wider


def _is_partial(name: str, tables: Sequence[pa.Table]) -> bool:
    return any(
        name not in table.column_names or HAS_PREFIX + name in table.column_names
        for table in tables
    )


def _completed(table: pa.Table, types: dict[str, pa.DataType], flagged: Sequence[str]) -> pa.Table:
    columns = {
        name: table[name].cast(kind)
        if name in table.column_names
        else pa.nulls(table.num_rows, kind)
        for name, kind in types.items()
    }
    for name in flagged:
        flag = HAS_PREFIX + name
        if flag in table.column_names:
            columns[flag] = table[flag]
        elif name in table.column_names:
            columns[flag] = pa.repeat(pa.scalar(True), table.num_rows)
        else:
            columns[flag] = pc.equal(table[OP], "D")
    return pa.table(columns)


def partial_columns(table: pa.Table) -> tuple[str, ...]:
    """Name the columns that some row may lack: those with a presence column."""
    return tuple(
        name.removeprefix(HAS_PREFIX) for name in table.column_names if name.startswith(HAS_PREFIX)
    )


def has_deletes(table: pa.Table) -> bool:
    """Whether any row deletes a key."""
    return bool(pc.any(pc.not_equal(table[OP], "U")).as_py())


def has_rows(table: pa.Table) -> bool:
    """Whether any row is more than the deletion of a key."""
    return bool(pc.index(table[OP], "U").as_py() >= 0)


def key_bounds(table: pa.Table, keys: Sequence[str]) -> tuple[KeyBound, ...]:
    """The range of each key column over all rows, deletes included.

    A key column has no bounds where it holds a null (which compares with nothing), is a
    floating-point number (a literal may differ in its last bit) or depends on a zone.
    """
    bounds = []
    for key in keys:
        column = table[key]
        zoned = pa.types.is_timestamp(column.type) and column.type.tz is not None
        if len(column) and not (column.null_count or pa.types.is_floating(column.type) or zoned):
            ends = pc.min_max(column)
            bounds.append(KeyBound(key, ends["min"].as_py(), ends["max"].as_py()))
    return tuple(bounds)
