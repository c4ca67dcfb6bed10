"""Reads Tencent DTS's envelopes and entries, without their rows."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet

from changes.formats.engine.format import VALUE_AT, Confidence, Packed, pack, packed_headers, sizes
from changes.formats.engine.proto_files import messages
from changes.model.model import BadMessage, Kind, TableName
from changes.model.places import TransactionEnd, Transactions, transactions_among
from offsets.parts import Part

_PROTO = messages("tencent/dts.proto")
_envelope = _PROTO["Envelope"].FromString
_items = _PROTO["EntriesHead"].FromString
_heads = _PROTO["EntriesHeads"].FromString
_rows = _PROTO["RowsEvents"].FromString
_column = _PROTO["Column"].FromString
_head = _PROTO["EntryHead"].FromString
_event = _PROTO["Event"].FromString

VERSION = 1
"""The one in which ``data`` holds Entries."""

_WHOLE = b"\x08\x01\x10\x01\x22"
"""What the envelope of a whole message begins with: version 1, 1 part, its data."""

_COMMIT, DML, DDL = 1, 2, 3
_BETWEEN = frozenset((0, 5, 6))
"""BEGIN, HEARTBEAT, CHECKPOINT."""
TAGS = {0: 0x0A, 1: 0x1A, DML: 0x12, DDL: 0x22, 4: 0x2A, 5: 0x32, 6: 0x3A}
"""By the type of a message: the first byte of its event, which is its member's number."""
_MEMBERS = {
    0: "beginEvent",
    1: "commitEvent",
    DML: "dmlEvent",
    DDL: "ddlEvent",
    4: "rollbackEvent",
    5: "heartbeatEvent",
    6: "checkpointEvent",
}
SOURCES = frozenset((0, 1, 3))
"""MySQL and MariaDB; 0 is also the value of an absent field, and no subscription has Oracle."""
_PGSQL = 2

_SHARD = "ShardId"
_RUNNING = "ps"
_LONGEST_NUMBER = 20
"""Digits of 2^64 - 1."""


def record_value(packed: bytes) -> bytes:
    """The value of a record; raises BadMessage where there is none."""
    size = sizes(packed)[0]
    if size < 0:
        raise BadMessage("a message without a value (a tombstone); Tencent DTS writes none")
    return packed[VALUE_AT : VALUE_AT + size]


def envelope_of(packed: bytes) -> Any:
    """Raises BadMessage."""
    try:
        envelope = _envelope(record_value(packed))
    except DecodeError as error:
        raise BadMessage(f"not an envelope of Tencent DTS: {_line(error)}") from error
    if envelope.version != VERSION:
        raise BadMessage(
            f"an envelope of version {envelope.version}; version {VERSION} is expected"
        )
    if envelope.index >= envelope.total:
        raise BadMessage(f"an envelope with part {envelope.index} of {envelope.total}")
    return envelope


def envelope_confidence(record: Packed) -> Confidence:
    """How sure it is that a record is an envelope. Unknown fields make it less sure.

    A part's bytes mean nothing by themselves: only its headers make it certain.
    """
    try:
        envelope = _envelope(record.value or b"")
        if envelope.version != VERSION or envelope.index >= envelope.total or not envelope.data:
            return Confidence.NO
        if any(name in (_SHARD, _RUNNING) for name, _ in record.headers):
            return Confidence.CERTAIN
        if envelope.total > 1:
            return Confidence.LIKELY
        entries = _heads(envelope.data)
    except DecodeError:
        return Confidence.NO
    if not entries.items or not all(each.HasField("header") for each in entries.items):
        return Confidence.NO
    unknown_fields = any(len(UnknownFieldSet(each)) for each in (envelope, entries, *entries.items))
    return Confidence.LIKELY if unknown_fields else Confidence.CERTAIN


def part_of(packed: bytes) -> tuple[str, Part] | None:
    """The shard's name (empty without shards) and the part, None of a whole; raises BadMessage."""
    if packed.startswith(_WHOLE, VALUE_AT):
        return None
    envelope = envelope_of(packed)
    if envelope.total == 1:
        return None
    part = Part(envelope.version, envelope.total, envelope.index, envelope.data)
    return shard_of(packed), part


def shard_of(packed: bytes) -> str:
    """The shard that a record is from, empty where its source has none; raises BadMessage."""
    return _shard(_headers(packed))


def sequence_number_of(packed: bytes) -> tuple[str, int | None]:
    """The shard and the sequence number in the record's headers; raises BadMessage."""
    headers = _headers(packed)
    number = headers.get(_RUNNING)
    if number is None:
        return _shard(headers), None
    if not number.isdigit() or len(number) > _LONGEST_NUMBER or int(number) >= 1 << 64:
        raise BadMessage(f"a header {_RUNNING} that is no number: {number[:30]!r}")
    return _shard(headers), int(number)


def _shard(headers: Mapping[str, bytes | None]) -> str:
    name = headers.get(_SHARD)
    try:
        return "" if name is None else name.decode()
    except UnicodeDecodeError as error:
        raise BadMessage(f"a header {_SHARD} that is no text: {name!r}") from error


def _headers(packed: bytes) -> Mapping[str, bytes | None]:
    """By name, the last of each."""
    try:
        return dict(packed_headers(packed))
    except (struct.error, msgspec.DecodeError) as error:
        raise BadMessage(f"not a packed record: {_line(error)}") from error


def record_of(data: bytes, shard: str = "") -> bytes:
    """A record of one envelope that holds it all."""
    envelope = _PROTO["Envelope"](version=VERSION, total=1, data=data)
    headers = [(_SHARD, shard.encode())] if shard else []
    return pack(None, envelope.SerializeToString(), headers)


def items_of(data: bytes) -> Sequence[bytes]:
    """The entries of a message, each still bytes; raises BadMessage."""
    try:
        items: Sequence[bytes] = _items(data).items
    except DecodeError as error:
        raise BadMessage(f"not the entries of Tencent DTS: {_line(error)}") from error
    return items


def items_joined(items: Sequence[bytes]) -> bytes:
    """The data of an envelope that holds these entries."""
    data: bytes = _PROTO["EntriesHead"](items=items).SerializeToString()
    return data


def heads_of(packed: bytes) -> Iterator[tuple[Kind, TableName, Any]]:
    """The entries of a whole message, their events still bytes; raises BadMessage."""
    envelope = envelope_of(packed)
    if envelope.total > 1:
        raise BadMessage(f"part {envelope.index} of {envelope.total} of a message, without others")
    for entry in _parsed(_heads, envelope.data):
        yield judged(entry)


def end_of(packed: bytes) -> TransactionEnd | None:
    """The end of a transaction behind which a whole message has no change, None where others may
    be mixed with it (``_is_shards``); raises BadMessage."""
    if _is_shards(packed):
        return None
    entries = reversed([entry for _, _, entry in heads_of(packed)])
    last = next((each for each in entries if each.header.messageType not in _BETWEEN), None)
    if last is None or last.header.messageType != _COMMIT:
        return None
    number = event_of(last.event, TableName("", "")).commitEvent.transactionId
    name = last.header.gtid or number or None
    return TransactionEnd(name, last.header.timestamp * 1000 or None)


def transactions_of(packed: bytes) -> Transactions | None:
    """The transactions of a whole message's changes, by their GTIDs, None where others may be mixed
    with them; raises BadMessage."""
    if _is_shards(packed):
        return None
    changes = (entry for kind, _, entry in heads_of(packed) if kind is not Kind.NOTHING)
    return transactions_among([entry.header.gtid for entry in changes])


def _is_shards(packed: bytes) -> bool:
    """Whether a message comes from a shard of TDSQL. Those of others stand between, so the end of
    a shard's transaction says nothing of theirs."""
    return shard_of(packed) != ""


def _parsed(parse: Any, data: bytes) -> Sequence[Any]:
    try:
        entries: Sequence[Any] = parse(data).items
    except DecodeError as error:
        raise BadMessage(f"not the entries of Tencent DTS: {_line(error)}") from error
    return entries


def row_events(packed: bytes) -> Iterator[tuple[str, Any]]:
    """The tables and events of a message's rows, their columns still bytes; raises BadMessage.

    For messages that ``heads_of`` has checked: entries without rows are skipped.
    """
    envelope = envelope_of(packed)
    if envelope.total > 1:
        raise BadMessage(f"part {envelope.index} of {envelope.total} of a message, without others")
    for entry in _parsed(_rows, envelope.data):
        header = entry.header
        if header.messageType == DML:
            yield f"{header.schemaName}.{header.tableName}", entry.event.dmlEvent


def read_head(item: bytes) -> Any:
    """An entry, its event still bytes; raises BadMessage."""
    try:
        return _head(item)
    except DecodeError as error:
        raise BadMessage(f"not an entry of Tencent DTS: {_line(error)}") from error


def judged(entry: Any) -> tuple[Kind, TableName, Any]:
    """An entry's kind, its table, the entry itself; raises BadMessage."""
    header = entry.header
    kind, table = header.messageType, TableName(header.schemaName, header.tableName)
    _check_event(kind, entry.event, table)
    if kind == DDL:
        return Kind.DDL, table, entry
    if kind != DML:
        return Kind.NOTHING, table, entry
    if not table.database or not table.table:
        part = "table" if table.database else "database"
        raise BadMessage(f"an entry of type DML without a {part}")
    if header.sourceType not in SOURCES:
        named = "PGSQL" if header.sourceType == _PGSQL else str(header.sourceType)
        raise BadMessage(f"{table}: the source is {named}; MySQL, MariaDB and TDSQL are read")
    return Kind.ROWS, table, entry


def _check_event(kind: int, event: bytes, table: TableName) -> None:
    """An absent type reads as BEGIN: so the event must match the type."""
    expected = TAGS.get(kind)
    if expected is None:
        raise BadMessage(f"{table}: an entry of unknown type {kind}")
    if event and event[0] == expected:
        return
    if not event and kind not in (DML, DDL):
        return
    parsed = event_of(event, table)
    if not parsed.HasField(_MEMBERS[kind]):
        found = [field.name for field, _ in parsed.ListFields()]
        raise BadMessage(
            f"{table}: an entry of type {kind} with {' and '.join(found) or 'no event'}; "
            f"{_MEMBERS[kind]} is expected"
        )


def event_of(event: bytes, table: TableName) -> Any:
    """The event with all that is in it; raises BadMessage."""
    try:
        return _event(event)
    except DecodeError as error:
        raise BadMessage(f"{table}: not an event of Tencent DTS: {_line(error)}") from error


def read_columns(raw: Sequence[bytes]) -> list[Any]:
    """The columns of an event of ``row_events``; raises BadMessage."""
    try:
        return [_column(each) for each in raw]
    except DecodeError as error:
        raise BadMessage(f"not a column of Tencent DTS: {_line(error)}") from error


def check_packed(packed: bytes | None) -> bytes:
    """Check a packed record; raises BadMessage."""
    try:
        if packed is None:
            raise BadMessage("a message without a value")
        sizes(packed)
    except struct.error as error:
        raise BadMessage(f"not a packed record: {_line(error)}") from error
    return packed


def _line(error: Exception) -> str:
    return " ".join(str(error).split())
