"""Decodes many of Canal's packets at once, where their rows are alike (flat_rows.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from google.protobuf.message import DecodeError

from changes.formats.canal.packet import (
    DELETE,
    INSERT,
    MARKS,
    MESSAGES,
    PLAIN,
    REMARKS,
    ROWDATA,
    UPDATE,
)
from changes.formats.engine.assemble import Text, as_texts
from changes.formats.engine.flat_rows import (
    MARK,
    MARK_NUMBER,
    FlatRows,
    flat_rows,
    joined,
    single,
    split_by_mark,
)
from changes.formats.engine.heads import HeadCache, stretches
from changes.formats.engine.proto_files import messages
from changes.formats.engine.wire_columns import Likeness, Odd, cut_column, frame_around
from changes.model.model import Head

_FLAT = messages("canal/flat.proto")
_packets = _FLAT["Packets"].FromString
_heads = _FLAT["PacketHeads"].FromString
_changes = _FLAT["Changes"].FromString
_rows = _FLAT["Rows"].FromString
_column = messages("canal/entry.proto")["Column"].FromString
_VALUE = 8
"""The number of a column's value."""


def _mark() -> bytes:
    entry = _FLAT["Entry"](entryType=[MARK_NUMBER], storeValue=[MARK])
    entry.header.eventType.append(MARK_NUMBER)
    packet: bytes = _FLAT["Packets"](body=_FLAT["Body"](messages=entry)).SerializeToString()
    return packet


def _head_mark() -> bytes:
    entry = _FLAT["EntryHead"](entryType=[MARK_NUMBER], storeValue=[MARK])
    entry.header.eventType.append(MARK_NUMBER)
    entry.header.schemaName.append(MARK)
    entry.header.tableName.append(MARK)
    body = _FLAT["BodyHeads"](messages=entry)
    packet: bytes = _FLAT["PacketHeads"](body=body).SerializeToString()
    return packet


_PACKET_MARK = _mark()
_HEAD_MARK = _head_mark()
_CHANGE_MARK: bytes = _FLAT["Changes"](eventType=[MARK_NUMBER], rowDatas=[MARK]).SerializeToString()
_ROW_MARK: bytes = _FLAT["Rows"](beforeColumns=[MARK], afterColumns=[MARK]).SerializeToString()

_OPS = {INSERT: ord("I"), UPDATE: ord("U"), DELETE: ord("D")}


def heads_of_many(values: Sequence[bytes]) -> Sequence[Head | None] | None:
    """The heads of packets; None, for one or for all, where ``kind_of`` has to look."""
    try:
        packets = joined(_heads, values, _HEAD_MARK)
        if packets.type != [MESSAGES] * len(values) or not PLAIN.issuperset(packets.compression):
            return None
        return _heads_of(packets.body.messages, len(values))
    except (DecodeError, ValueError, LookupError):  # lists that do not fit together: damage
        return None


def _heads_of(entry: Any, count: int) -> Sequence[Head | None] | None:
    header = entry.header
    kinds = list(entry.entryType)
    # Entries without content need an error by name.
    if len(kinds) != len(entry.storeValue):
        return None
    tables = HeadCache()
    databases = single(header.schemaName, MARK, count)
    names = single(header.tableName, MARK, count)
    step = len(kinds) // count
    pattern = kinds[:step]
    if (
        databases is not None
        and names is not None
        and kinds == pattern * count
        and pattern[-1] == MARK_NUMBER
        and pattern.count(ROWDATA) == 1
        and MARKS.issuperset(set(pattern[:-1]) - {ROWDATA})
        and _OPS.keys() >= set(single(header.eventType, MARK_NUMBER, count) or (0,))
    ):
        return tables.heads(databases, names)
    every = (
        stretches(kinds, MARK_NUMBER, count),
        stretches(list(header.eventType), MARK_NUMBER, count),
        stretches(list(header.schemaName), MARK, count),
        stretches(list(header.tableName), MARK, count),
    )
    return [_head(*parts, tables) for parts in zip(*every, strict=True)]


def _head(
    kinds: Sequence[int],
    events: Sequence[int],
    databases: Sequence[bytes],
    names: Sequence[bytes],
    tables: HeadCache,
) -> Head | None:
    """One packet's, if all its entries are rows or marks."""
    rows = kinds.count(ROWDATA)
    if not MARKS.issuperset(set(kinds) - {ROWDATA}) or not _OPS.keys() >= set(events):
        return None
    if not rows == len(events) == len(databases) == len(names):
        return None
    return tables.head(databases, names)


def rows_of_many(values: Sequence[bytes]) -> FlatRows | None:
    """The rows of packets that ``kind_of`` called good; None where they are to be read singly."""
    try:
        changes = _changes_of(values)
        return None if changes is None else _rows_of(*changes)
    except (DecodeError, ValueError, LookupError):  # lists that do not fit together: damage
        return None


def _changes_of(values: Sequence[bytes]) -> tuple[list[bytes], Sequence[int], list[int]] | None:
    """The RowChanges, the packet of each, and the types in their entries' headers."""
    packets = joined(_packets, values, _PACKET_MARK)
    count = len(values)
    if packets.type != [MESSAGES] * count or not PLAIN.issuperset(packets.compression):
        return None
    entry = packets.body.messages
    kinds, stores = list(entry.entryType), entry.storeValue
    if len(kinds) != len(stores) or kinds.count(MARK_NUMBER) != count:
        return None
    types = list(entry.header.eventType)
    events = single(types, MARK_NUMBER, count)
    step = kinds.index(MARK_NUMBER) + 1
    pattern = kinds[:step]
    if events and pattern.count(ROWDATA) == 1 and kinds == pattern * count:
        if not MARKS.issuperset(set(pattern) - {ROWDATA, MARK_NUMBER}):
            return None
        if stores[step - 1 :: step] != [MARK] * count:
            return None
        return stores[pattern.index(ROWDATA) :: step], range(count), events
    events = [event for event in types if event != MARK_NUMBER]
    found = _rows_among(kinds, stores)
    return None if found is None else (*found, events)


def _rows_among(
    kinds: Sequence[int], stores: Sequence[bytes]
) -> tuple[list[bytes], list[int]] | None:
    found: list[bytes] = []
    records: list[int] = []
    record = 0
    for kind, store in zip(kinds, stores, strict=True):
        if kind == ROWDATA:
            found.append(store)
            records.append(record)
        elif kind == MARK_NUMBER:
            if store != MARK:
                return None
            record += 1
        elif kind not in MARKS:
            return None
    return found, records


def _rows_of(changes: list[bytes], records: Sequence[int], events: list[int]) -> FlatRows | None:
    if MARK in changes or not changes:
        return None
    flat = joined(_changes, changes, _CHANGE_MARK)
    # What a header and its RowChange say is the same in all that Canal writes. An older one's
    # defaults, which have no bytes, would not be seen here.
    if single(flat.eventType, MARK_NUMBER, len(changes)) != events or any(flat.isDdl):
        return None
    apart = split_by_mark(list(flat.rowDatas), len(changes))
    if apart is None:
        return None
    rows, numbers = apart
    kinds = set(events)
    if kinds <= _OPS.keys() and len(kinds) == 1 and len(rows) == len(changes) == numbers[-1] + 1:
        ops = bytes((_OPS[events[0]],)) * len(rows)
    else:
        if set(numbers) != {n for n, kind in enumerate(events) if kind not in REMARKS}:
            return None
        ops = bytes([_OPS.get(events[number], 0) for number in numbers])
        if 0 in ops:
            return None
        records = [records[number] for number in numbers]
    images = joined(_rows, rows, _ROW_MARK)
    return flat_rows(images.beforeColumns, images.afterColumns, ops, records)


def first_of(flat: FlatRows) -> list[Any] | None:
    """The columns of the first row; None where it is to be read singly."""
    try:
        first = [_column(cells[0]) for cells in flat.columns]
        # Canal's minimal images have the key in the old row alone; then rows are read singly.
        beside = [_column(cell).isKey for cell in flat.olds.first()] if flat.olds else ()
    except DecodeError:
        return None
    if any(beside) and not any(column.isKey for column in first):
        return None
    return first


def texts_of(flat: FlatRows, columns: Sequence[Any]) -> list[Text] | None:
    """Each column as text; None where not all rows have just these columns."""
    texts = []
    for cells, column in zip(flat.columns, columns, strict=True):
        text = _text(cells, (column.name, column.mysqlType, column.isKey))
        if text is None:
            return None
        texts.append(text)
    return texts


class _Other(Exception):
    """A cell of another column."""


def _text(cells: Sequence[bytes], declared: tuple[str | bool, ...]) -> Text | None:
    def look(cell: bytes) -> Likeness:
        column = _column(cell)
        if (column.name, column.mysqlType, column.isKey) != declared:
            raise _Other
        if column.isNull:
            return None
        return frame_around(cell, _VALUE) if column.value else ""

    try:
        try:
            found = cut_column(cells, look)
        except Odd:
            found = None
        return found or _one_by_one(cells, declared)
    except (_Other, DecodeError):
        return None


def _one_by_one(cells: Sequence[bytes], declared: tuple[str | bool, ...]) -> Text:
    columns = [_column(cell) for cell in cells]
    if any((c.name, c.mysqlType, c.isKey) != declared for c in columns):
        raise _Other
    (text,) = as_texts([[None if c.isNull else c.value for c in columns]])
    return text
