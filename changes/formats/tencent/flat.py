"""Decodes many of Tencent DTS's messages at once, where their rows are alike (flat_rows.py)."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Any

import pyarrow.compute as pc
from google.protobuf.message import DecodeError
from msgspec import UNSET

from changes.formats.engine.assemble import Text, as_texts
from changes.formats.engine.flat_rows import (
    MARK,
    MARK_NUMBER,
    FlatRows,
    flat_rows,
    joined,
    split_by_mark,
)
from changes.formats.engine.format import packed_values
from changes.formats.engine.heads import HeadCache, stretches
from changes.formats.engine.layout import Refused
from changes.formats.engine.proto_files import messages
from changes.formats.engine.wire_columns import Likeness, Odd, cut_column, frame_around
from changes.formats.tencent.message import DDL, DML, SOURCES, TAGS, VERSION
from changes.formats.tencent.values import (
    BYTES,
    NA,
    NIL,
    NUMBERS,
    STRING,
    UTF8,
    ZONE_UTC,
    TextRule,
    cell_of,
)
from changes.model.model import Head

_FLAT = messages("tencent/flat.proto")
_envelopes = _FLAT["Envelopes"].FromString
_heads = _FLAT["EnvelopeHeads"].FromString
_events = _FLAT["Events"].FromString
_rows = _FLAT["Rows"].FromString
_data = messages("tencent/dts.proto")["Data"].FromString
_NA: bytes = messages("tencent/dts.proto")["Data"](dataType=NA).SerializeToString()
_SV, _BV = 3, 4
"""The numbers of a value's carriers."""

_EVENT_MARK: bytes = _FLAT["Events"](
    dmlEventType=[MARK_NUMBER], columns=[MARK], rows=[MARK]
).SerializeToString()
_ROW_MARK: bytes = _FLAT["Rows"](oldColumns=[MARK], newColumns=[MARK]).SerializeToString()


def _mark() -> bytes:
    event = _FLAT["Entry"](event=_FLAT["Event"](dmlEvent=[MARK]))
    entries = _FLAT["Entries"](items=event)
    envelope: bytes = _FLAT["Envelopes"](data=entries).SerializeToString()
    return envelope


def _head_mark() -> bytes:
    entry = _FLAT["EntryHead"](event=[MARK])
    entry.header.messageType.append(MARK_NUMBER)
    entry.header.schemaName.append(MARK)
    entry.header.tableName.append(MARK)
    entries = _FLAT["EntriesHeads"](items=entry)
    envelope: bytes = _FLAT["EnvelopeHeads"](data=entries).SerializeToString()
    return envelope


_ENVELOPE_MARK = _mark()
_HEAD_MARK = _head_mark()
_MARK_TAG = MARK[:1]
_KINDS = {tag: kind for kind, tag in TAGS.items()}
"""By the first byte of an event: the type of its entry."""
_first = itemgetter(0)
_OPS = {0: ord("I"), 1: ord("U"), 2: ord("D")}


def heads_of_many(packed: Sequence[bytes]) -> Sequence[Head | None] | None:
    """The heads of messages; None, for one or for all, where ``judged`` has to look."""
    count = len(packed)
    try:
        envelopes = joined(_heads, packed_values(packed), _HEAD_MARK)
        if envelopes.version != [VERSION] * count or envelopes.total != [1] * count:
            return None
        return None if any(envelopes.index) else _heads_of(envelopes.data.items, count)
    except (DecodeError, ValueError, LookupError, struct.error):
        return None


def _heads_of(entry: Any, count: int) -> Sequence[Head | None] | None:
    header = entry.header
    if not SOURCES.issuperset(header.sourceType):
        return None
    tags = bytes(map(_first, entry.event))
    tables = HeadCache()
    apart = (
        tags.split(_MARK_TAG)[:-1],
        stretches(list(header.messageType), MARK_NUMBER, count),
        stretches(list(header.schemaName), MARK, count),
        stretches(list(header.tableName), MARK, count),
    )
    known: dict[tuple[object, ...], Head | None] = {}
    found = []
    for parts in zip(*apart, strict=True):
        # Most messages of a table have the same head.
        key = (parts[0], *map(tuple, parts[1:]))
        if key not in known:
            known[key] = _head(*parts, tables)
        found.append(known[key])
    return found


def _head(
    tags: bytes,
    kinds: Sequence[int],
    databases: Sequence[bytes],
    names: Sequence[bytes],
    tables: HeadCache,
) -> Head | None:
    """One message's, if all its entries are rows or marks and their events match their types."""
    by_tag = [_KINDS.get(tag) for tag in tags]
    # BEGIN is 0, which is not on the wire.
    if [kind for kind in by_tag if kind != 0] != kinds or DDL in kinds or None in by_tag:
        return None
    # Entries without a table may have empty names.
    databases, names = list(filter(None, databases)), list(filter(None, names))
    if not len(databases) == len(names) == kinds.count(DML):
        return None
    return tables.head(databases, names)


def rows_of_many(packed: Sequence[bytes]) -> tuple[tuple[bytes, ...], FlatRows] | None:
    """The rows of messages that ``judged`` accepted, and their columns; None: read them singly."""
    try:
        events = _events_of(packed_values(packed))
        return None if events is None else _rows_of(*events)
    except (DecodeError, ValueError, LookupError, struct.error):
        return None


def _events_of(values: Sequence[bytes]) -> tuple[list[bytes], Sequence[int]] | None:
    """The events of rows, and the message of each."""
    count = len(values)
    envelopes = joined(_envelopes, values, _ENVELOPE_MARK)
    if envelopes.version != [VERSION] * count or envelopes.total != [1] * count:
        return None
    if any(envelopes.index):
        return None
    entry = envelopes.data.items
    apart = split_by_mark(list(entry.event.dmlEvent), count)
    # As many row events as entries of that type: each entry has its own event.
    if apart is None or list(entry.header.messageType).count(DML) != len(apart[0]):
        return None
    return apart


def _rows_of(
    events: list[bytes], records: Sequence[int]
) -> tuple[tuple[bytes, ...], FlatRows] | None:
    if not events:
        return None
    count = len(events)
    flat = joined(_events, events, _EVENT_MARK)
    columns, rows = list(flat.columns), list(flat.rows)
    first_columns = columns[: columns.index(MARK) + 1]
    apart = split_by_mark(rows, count)
    letters = _letters(list(flat.dmlEventType), count)
    if columns != first_columns * count or apart is None or letters is None:
        return None
    rows, numbers = apart
    if not rows:
        return None
    if numbers == range(count):
        ops = letters
    else:
        ops = bytes([letters[number] for number in numbers])
        records = [records[number] for number in numbers]
    images = joined(_rows, rows, _ROW_MARK)
    found = flat_rows(images.oldColumns, images.newColumns, ops, records)
    if found is None or len(found.columns) != len(first_columns) - 1:
        return None
    return tuple(first_columns[:-1]), _filled(found)


def _filled(flat: FlatRows) -> FlatRows:
    """What an updated row lacks and its old one holds did not change."""
    if flat.olds is None:
        return flat
    columns = list(flat.columns)
    for place, cells in enumerate(columns):
        if _NA in cells:
            pairs = zip(cells, flat.olds.column(place), strict=True)
            columns[place] = [old if cell == _NA else cell for cell, old in pairs]
    return replace(flat, columns=columns)


def _letters(types: list[int], count: int) -> bytes | None:
    """What each event is. INSERT is 0, which is not on the wire: its stretch is empty."""
    if types == [MARK_NUMBER] * count:
        return b"I" * count
    found = bytearray()
    kind = 0
    for each in types:
        if each == MARK_NUMBER:
            found.append(_OPS.get(kind, 0))
            kind = 0
        elif kind:
            return None
        else:
            kind = each
    return None if len(found) != count or 0 in found else bytes(found)


def texts_of(flat: FlatRows, ways: Sequence[TextRule], zone: str) -> list[Text] | None:
    """Each column as text; None where a value is to be refused by its record's place."""
    try:
        return [_text(cells, way, zone) for cells, way in zip(flat.columns, ways, strict=True)]
    except (Refused, DecodeError, UnicodeDecodeError):
        return None


def _text(cells: Sequence[bytes], way: TextRule, zone: str) -> Text:
    try:
        found = cut_column(cells, _LOOKS[way])
    except Odd:
        found = None
    if found is not None and way is TextRule.INSTANT:
        found = _utc(found)
    if found is not None:
        return found
    values = [_data(cell) for cell in cells]
    for cell, value in zip(cells, values, strict=True):
        _check_absent(cell, value)
    (text,) = as_texts([[cell_of(value.dataType, value, way, zone) for value in values]])
    return text


def _utc(text: Text) -> Text | None:
    """Points in time that all end in UTC's offset, without it."""
    if pc.all(pc.ends_with(text.values, ZONE_UTC)).as_py() is False:
        return None
    return Text(pc.utf8_slice_codeunits(text.values, 0, -len(ZONE_UTC)), text.carried)


def _check_absent(cell: bytes, value: Any) -> None:
    """An absent value written in another way than all was not filled from its old row."""
    if value.dataType == NA and cell != _NA:
        raise Refused("to be read singly")


def _look(cell: bytes, way: TextRule) -> Likeness:
    """What a cell shows of others like it; raises Odd where ``cell_of`` knows better."""
    value = _data(cell)
    kind = value.dataType
    _check_absent(cell, value)
    if kind in (NIL, NA) and not (value.sv or value.bv):
        return None if kind == NIL else UNSET
    if kind in NUMBERS and way is TextRule.TEXT and value.sv:
        return frame_around(cell, _SV)
    text = kind == STRING or (kind == BYTES and way is not TextRule.INSTANT)
    charset = value.charset.partition("_")[0].lower()
    if text and not value.sv and (charset in UTF8 or charset == "binary"):
        if value.bv:
            return frame_around(cell, _BV)
        if way is not TextRule.INSTANT:
            return ""
    raise Odd


def _look_text(cell: bytes) -> Likeness:
    return _look(cell, TextRule.TEXT)


def _look_label(cell: bytes) -> Likeness:
    return _look(cell, TextRule.LABEL)


def _look_instant(cell: bytes) -> Likeness:
    return _look(cell, TextRule.INSTANT)


def _look_odd(_cell: bytes) -> Likeness:
    raise Odd


_LOOKS = {
    TextRule.TEXT: _look_text,
    TextRule.LABEL: _look_label,
    TextRule.INSTANT: _look_instant,
    TextRule.BYTES: _look_odd,
    TextRule.BIT: _look_odd,
}
