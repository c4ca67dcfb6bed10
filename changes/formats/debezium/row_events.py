"""Counts: the row event that a record is, with its number in its transaction."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import Raw, Struct

from changes.formats.debezium import record as careful
from changes.formats.debezium.parts import NEW_KEY, OLD_KEY
from changes.formats.debezium.places import LIVE, Names
from changes.formats.debezium.transactions import number_in, transaction_name
from changes.formats.engine.format import VALUE_AT, packed_header, sizes
from changes.formats.engine.json_text import milliseconds
from changes.formats.engine.layout import Refused
from changes.model.model import Head, Kind, TableName
from changes.model.row_events import RowEvent

_OPS = {"c": "I", "r": "I", "u": "U", "d": "D"}


class _Source(Struct, gc=False):
    name: str | None = None
    ts_ms: Raw = Raw(b"")
    snapshot: Raw = Raw(b"")


class _Transaction(Struct, gc=False):
    id: str | None = None
    data_collection_order: int | str | None = None


class _Envelope(Struct, gc=False):
    payload: _Envelope | None = None
    before: Raw = Raw(b"")
    after: Raw = Raw(b"")
    op: str | None = None
    source: _Source | None = None
    transaction: _Transaction | None = None


_envelope = msgspec.json.Decoder(_Envelope).decode


def events_of(packed: bytes, head: Head, names: Names, *, deletes: bool) -> tuple[RowEvent, ...]:
    """The event of a row or a truncation; of other statements none. ``deletes``: tombstones are the
    stream's deletes; else they repeat these. Raises Refused."""
    try:
        found = _envelope(packed[VALUE_AT : VALUE_AT + max(sizes(packed)[0], 0)])
        found = found.payload or found
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        found = _Envelope()  # a bare NaN, a flattened row, a tombstone
    has_image = _is_object(found.after) or _is_object(found.before)
    if found.source is None or found.op not in _OPS or not has_image:
        return _slowly(packed, head, names, deletes)
    assert head.table is not None
    return (_event(packed, head.table, _OPS[found.op], found),)


def _event(packed: bytes, table: TableName, op: str, found: _Envelope) -> RowEvent:
    source = found.source or _Source()
    read = found.op == "r" or bytes(source.snapshot) not in LIVE
    told = found.transaction or _Transaction()
    order = number_in(told.data_collection_order)
    id_ = None if told.id is None or order is None else transaction_name(told.id)
    time_ms = None if read else milliseconds(source.ts_ms)
    return RowEvent(table, _halved(packed, op), time_ms, read, id_, order, source.name)


def _halved(packed: bytes, op: str) -> str:
    """A changed key comes as a delete and an insert, and is one update."""
    if op == "D" and packed_header(packed, NEW_KEY) is not None:
        return ""
    return "U" if op == "I" and packed_header(packed, OLD_KEY) is not None else op


def _slowly(packed: bytes, head: Head, names: Names, deletes: bool) -> tuple[RowEvent, ...]:
    record = careful.read(packed, names)
    if record.tombstone is not None:
        return (RowEvent(head.table, "D", None),) if deletes and head.table else ()
    if record.kind is not Kind.ROWS and record.letter != "t":
        return ()
    assert record.table is not None
    payload = record.payload or {}
    if record.added is not None:
        return (_flattened(packed, record.table, record.letter, payload),)
    try:
        parts = {n: payload[n] for n in ("source", "transaction", "op") if n in payload}
        found = _envelope(msgspec.json.encode(parts))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Refused(f"the envelope can't be read: {error}") from error
    op = "T" if record.letter == "t" else record.letter
    return (_event(packed, record.table, op, found),)


def _flattened(packed: bytes, table: TableName, op: str, row: Mapping[str, Raw]) -> RowEvent:
    """A row without an envelope names no transaction that could be counted."""
    snapshot, letter = (bytes(row.get(n, Raw(b""))) for n in ("__source_snapshot", "__op"))
    read = snapshot not in LIVE or letter == b'"r"'
    time_ms = None if read else milliseconds(row.get("__source_ts_ms", Raw(b"")))
    return RowEvent(table, _halved(packed, op), time_ms, read)


def _is_object(raw: Raw) -> bool:
    return bytes(memoryview(raw)[:1]) == b"{"
