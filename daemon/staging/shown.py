"""Tells what each source table's rows have, of a target that several tables may feed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from actors.contract.effects import LaneMessages, Stage
from changes.decoding.assemble import Pieces
from changes.formats.base import Format
from changes.lacking import Shown, shown_by_tables
from changes.model import BadMessage, Changes, TableSchema
from changes.shaping.shape import Shape

Decoded = Sequence[tuple[LaneMessages, Changes]]
"""What became of lanes' messages, of those that have rows."""


def tables_shown(
    request: Stage, decoded: Decoded, schema: TableSchema, format_: Format
) -> Mapping[str, Shown]:
    """By source table what its rows have, under the target's names; none where no insert lacks a
    column, so that whole rows cost nothing. A table that is not known is empty."""
    if request.merged is None:
        return {}
    wide = request.merged.union(column.name.lower() for column in schema.columns)
    found: dict[str, Shown] = {}
    for lane, changes in decoded:
        has = changes.carried
        if has is None or wide <= {name.lower() for name in has}:
            continue
        for table, shown in _by_table(lane, changes, request.route.shape, has, format_):
            found[table] = shown.and_(found.get(table, Shown()))
    return found


def _by_table(
    lane: LaneMessages, changes: Changes, shape: Shape, has: frozenset[str], format_: Format
) -> Iterable[tuple[str, Shown]]:
    pieces, values = changes.origins, lane.messages.values
    unknown = [("", Shown(has, has))]
    if not isinstance(pieces, Pieces):  # a filter has taken rows away
        return unknown
    read = max(pieces.records) + 1
    try:
        heads = list(format_.heads(values[:read]))
    except BadMessage:
        return unknown
    if len(heads) < read:  # a format that takes messages apart
        return unknown
    tables = ["" if head.table is None else str(head.table) for head in heads]
    made = has - {shape.name_of(name) for name in pieces.columns}
    made |= {name for name, _ in shape.computed}
    return [
        (table, Shown(_having(shape, rows.any, made), _inserts(shape, rows, made)))
        for table, rows in shown_by_tables(pieces, tables).items()
    ]


def _inserts(shape: Shape, rows: Shown, made: frozenset[str]) -> frozenset[str] | None:
    return None if rows.inserts is None else _having(shape, rows.inserts, made)


def _having(shape: Shape, names: frozenset[str], made: frozenset[str]) -> frozenset[str]:
    """With the columns that the route makes of them."""
    return _named(shape, names) | (made - shape.computed_without(names))


def _named(shape: Shape, names: Iterable[str]) -> frozenset[str]:
    return frozenset(shape.name_of(name) for name in names if shape.shows(name))
