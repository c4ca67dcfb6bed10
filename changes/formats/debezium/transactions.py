"""What records say of their transaction: an event's number in it, its begin, its end."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec
from msgspec import Raw, Struct

from changes.formats.debezium import record as careful
from changes.formats.debezium.places import Names, source_transaction
from changes.formats.engine.format import VALUE_AT, sizes, unpack
from changes.formats.engine.layout import Refused
from changes.model.digits import is_digits
from changes.model.model import Kind
from changes.model.row_events import TransactionMark, TransactionPart

_OWN = "io.debezium."
"""Begins the name of what an end counts beside tables: PostgreSQL's messages."""

_GROWING = re.compile(r"([0-9]+):[0-9]+")
"""PostgreSQL's name of a transaction: its number and the LSN of the event that says it."""

_MEMBER = b'"transaction":'
_PART = re.compile(rb'\{"id":"([^"\\]+)","total_order":([0-9]{1,18})[,}]')
"""The member of an envelope as Debezium's converters write it, behind its name."""

_NONE = b"null"


class _Count(Struct, gc=False):
    data_collection: str
    event_count: int | str


class _Mark(Struct, gc=False):
    id: str
    status: str
    event_count: int | str | None = None
    data_collections: list[_Count] | None = None
    ts_ms: int | None = None


class _Numbered(Struct, gc=False):
    id: str | None = None
    total_order: int | str | None = None


_mark = msgspec.json.Decoder(_Mark).decode
_numbered = msgspec.json.Decoder(_Numbered | None).decode


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
    events = number_in(found.event_count) or 0
    return TransactionMark(
        transaction_name(found.id), found.status == "END", found.ts_ms, tables, events
    )


def _counts(found: _Mark) -> Mapping[str, int] | None:
    """By table the number of events, None where their sum is another one than the end says."""
    total, tables, count = 0, dict[str, int](), number_in(found.event_count)
    if found.data_collections is None and count != 0:
        return None
    for each in found.data_collections or ():
        number = number_in(each.event_count)
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


def name_of_transaction(packed: bytes, names: Names) -> str | None:
    """What a change's transaction is called, by its source or by the transaction's part."""
    try:
        value = unpack(packed).value
        name = None if value is None else source_transaction(value)
    except (ValueError, RecursionError):
        return None
    if name != "":
        return name
    part = part_of_transaction(packed, names)
    return part.id if isinstance(part, TransactionPart) else None


def part_of_transaction(packed: bytes, names: Names) -> TransactionPart | TransactionMark | None:
    """What a record is of its transaction; None of records that are no part of any: statements,
    tombstones, rows that were read from the table. About half a microsecond for a row."""
    end = VALUE_AT + sizes(packed)[0] if len(packed) > VALUE_AT else 0
    if end <= VALUE_AT:
        return None
    at = packed.rfind(_MEMBER, VALUE_AT, end)
    # Behind the images, which may have a column of that name: the last one is the envelope's.
    try:
        if at >= 0 and (found := _PART.match(packed, at + len(_MEMBER), end)) is not None:
            return TransactionPart(transaction_name(found[1].decode()), int(found[2]))
        return mark_of(packed, names) or _carefully(packed, names)
    except (Refused, ValueError, RecursionError):
        return None  # whoever decodes it says so


def _carefully(packed: bytes, names: Names) -> TransactionPart | None:
    record = careful.read(packed, names)
    if record.tombstone is not None or (record.kind is not Kind.ROWS and record.letter != "t"):
        return None
    payload = record.payload or {}
    if bytes(payload.get("op", Raw(_NONE))) == b'"r"':
        return None
    told = None
    if record.added is None and "transaction" in payload:
        told = _numbered(bytes(payload["transaction"]))
    order = None if told is None else number_in(told.total_order)
    if told is None or told.id is None or order is None or order < 1:
        return TransactionPart(None, 0)
    return TransactionPart(transaction_name(told.id), order)


def number_in(told: int | str | None) -> int | None:
    if isinstance(told, str):
        return int(told) if is_digits(told) and len(told) < 20 else None
    return told
