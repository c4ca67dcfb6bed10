"""Counts with the transaction's part of a record: a row's number, an end's numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec
from msgspec import Raw, Struct

from changes.formats.debezium import record as careful
from changes.formats.debezium.parts import NEW_KEY, OLD_KEY
from changes.formats.debezium.places import LIVE, Names
from changes.formats.engine.format import VALUE_AT, packed_header, sizes
from changes.formats.engine.json_text import milliseconds
from changes.formats.engine.layout import Refused
from changes.model.digits import is_digits
from changes.model.model import Head, Kind, TableName
from changes.model.row_events import RowEvent, TransactionMark

_OWN = "io.debezium."
"""Begins the name of what an end counts beside tables: PostgreSQL's messages."""

_GROWING = re.compile(r"([0-9]+):[0-9]+")
"""PostgreSQL's name of a transaction: its number and the LSN of the event that says it."""

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


class _Count(Struct, gc=False):
    data_collection: str
    event_count: int | str


class _Mark(Struct, gc=False):
    id: str
    status: str
    event_count: int | str | None = None
    data_collections: list[_Count] | None = None
    ts_ms: int | None = None


_envelope = msgspec.json.Decoder(_Envelope).decode
_mark = msgspec.json.Decoder(_Mark).decode


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
    order = _number(told.data_collection_order)
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


def mark_of(packed: bytes, names: Names) -> TransactionMark | None:
    """The begin or the end of a transaction; None of other records. Raises Refused."""
    if b'"event_count"' not in packed or b'"status"' not in packed:
        return None
    record = careful.read(packed, names)
    if record.letter != "transaction" or record.payload is None:
        return None
    try:
        found = _mark(msgspec.json.encode(record.payload))
    except msgspec.DecodeError as error:
        raise Refused(f"a transaction's record that can't be read: {error}") from error
    tables = _counts(found) if found.status == "END" else None
    return TransactionMark(transaction_name(found.id), found.status == "END", found.ts_ms, tables)


def _counts(found: _Mark) -> Mapping[str, int] | None:
    """By table the number of events, None where their sum is another one than the end says."""
    total, tables, count = 0, dict[str, int](), _number(found.event_count)
    if found.data_collections is None and count != 0:
        return None
    for each in found.data_collections or ():
        number = _number(each.event_count)
        if number is None:
            return None
        total += number
        if not each.data_collection.startswith(_OWN):
            tables[each.data_collection] = tables.get(each.data_collection, 0) + number
    return tables if total == count else None


def transaction_name(id_: str) -> str:
    """The part of a transaction's id that all its records have."""
    found = _GROWING.fullmatch(id_)
    return id_ if found is None else found[1]


def _number(told: int | str | None) -> int | None:
    if isinstance(told, str):
        return int(told) if is_digits(told) and len(told) < 20 else None
    return told


def _is_object(raw: Raw) -> bool:
    return bytes(memoryview(raw)[:1]) == b"{"
