"""Reads Canal's packets: their entries, and the kind of an entry, without its rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet

from changes.formats.engine.format import Confidence, earliest
from changes.formats.engine.proto_files import messages
from changes.model.model import BadMessage, Kind, TableName
from changes.model.places import TransactionEnd, Transactions, transactions_among

_PACKET = messages("canal/packet.proto")
_ENTRY = messages("canal/entry.proto")

_packet = _PACKET["Packet"].FromString
_messages = _PACKET["Messages"].FromString
_ack = _PACKET["Ack"].FromString
_entry = _ENTRY["Entry"].FromString
_change = _ENTRY["RowChange"].FromString
_heads_packet = _ENTRY["HeadsPacket"].FromString
_rows_packet = _ENTRY["RowsPacket"].FromString
_change_head = _ENTRY["RowChangeHead"].FromString
_end = _ENTRY["TransactionEnd"].FromString

_TYPES = _PACKET["Packet"].DESCRIPTOR.fields_by_name["type"].enum_type
_COMPRESSIONS = _PACKET["Packet"].DESCRIPTOR.fields_by_name["compression"].enum_type

_ACK, MESSAGES, _HEARTBEAT = 3, 7, 11
PLAIN = frozenset((0, 1))
"""The values for no compression: that of the older protocol, and NONE."""

INSERT, UPDATE, DELETE = 1, 2, 3
_STATEMENTS = (4, 5, 6, 8, 9, 10, 11)
"""Event types of statements, unless the RowChange differs: CREATE, ALTER, ERASE…"""
REMARKS = (7, 12, 13, 14, 15)
"""QUERY, GTID, XACOMMIT, XAROLLBACK, MHEARTBEAT."""
_EVENTS = _ENTRY["Header"].DESCRIPTOR.fields_by_name["eventType"].enum_type

ROWDATA = 2
_ROWS = (0, ROWDATA)
_TRANSACTIONEND = 3
_BETWEEN = frozenset((1, 4, 5))
"""TRANSACTIONBEGIN, HEARTBEAT, GTIDLOG."""
MARKS = _BETWEEN | {_TRANSACTIONEND}
"""The types of entries that change nothing."""
_NO_XID = "0"
"""Canal's number of a transaction whose end has none: of XA, or without InnoDB."""


def entries_of(value: bytes) -> Sequence[bytes]:
    """The entries of a packet, each still bytes; raises BadMessage."""
    try:
        packet = _packet(value)
        kind = packet.type
        if kind != MESSAGES:
            if kind == _HEARTBEAT:
                return ()
            raise BadMessage(_other(packet))
        if packet.compression not in PLAIN:
            name = _name(_COMPRESSIONS, packet.compression)
            raise BadMessage(f"a Canal packet with compression {name}; only NONE can be read")
        entries: Sequence[bytes] = _messages(packet.body).messages
    except DecodeError as error:
        raise BadMessage(f"not a Canal packet: {_line(error)}") from error
    return entries


def packet_confidence(value: bytes) -> Confidence:
    """How sure it is that a message is a packet of Canal's. Unknown fields make it less sure."""
    try:
        packet = _packet(value)
        if packet.type not in (_ACK, MESSAGES, _HEARTBEAT):
            return Confidence.NO
        if packet.type != MESSAGES or packet.compression not in PLAIN:
            return Confidence.NO if _odd(packet) else Confidence.LIKELY
        body = _messages(packet.body)
        entries = [_entry(raw) for raw in body.messages]
    except DecodeError:
        return Confidence.NO
    if any(not each.HasField("header") for each in entries):
        return Confidence.NO
    odd = any(map(_odd, (packet, body, *entries)))
    if not entries:
        return Confidence.NO if odd else Confidence.LIKELY
    return Confidence.LIKELY if odd else Confidence.CERTAIN


def _odd(message: Any) -> bool:
    """Whether there are fields that the definition does not have."""
    return len(UnknownFieldSet(message)) > 0


def heads_of(value: bytes) -> Sequence[Any]:
    """The entries of a packet, what they hold still bytes; raises BadMessage."""
    try:
        packet = _heads_packet(value)
        if packet.type == MESSAGES and packet.compression in PLAIN:
            entries: Sequence[Any] = packet.body.messages
            return entries
    except DecodeError:
        pass  # the code below names the error
    return [read_entry(raw) for raw in entries_of(value)]


def rows_of(value: bytes) -> Iterator[tuple[Any, Any]]:
    """The entries of rows in a packet, each with its RowChange; raises BadMessage.

    For packets that ``kind_of`` has checked: entries without rows are skipped.
    """
    try:
        packet = _rows_packet(value)
    except DecodeError:
        packet = None
    if packet is None or packet.type != MESSAGES or packet.compression not in PLAIN:
        for raw in entries_of(value):
            entry = read_entry(raw)
            if kind_of(entry) is Kind.ROWS:
                yield entry, row_change(entry)
        return
    for entry in packet.body.messages:
        if entry.entryType in _ROWS and (entry.header.eventType or UPDATE) <= DELETE:
            yield entry, entry.storeValue


def _other(packet: Any) -> str:
    if packet.type == _ACK:
        ack = _ack(packet.body)
        if ack.error_code:
            said = " ".join(ack.error_message.split())
            return f"a Canal packet of type ACK with error {ack.error_code}: {said}"
    return f"a Canal packet of type {_name(_TYPES, packet.type)}; MESSAGES is expected"


def _name(enum: Any, number: int) -> str:
    found = enum.values_by_number.get(number)
    return f"{number}" if found is None else f"{found.name}"


def _line(error: Exception) -> str:
    return " ".join(str(error).split())


def packed_entries(entries: Sequence[bytes]) -> bytes:
    """A packet of these entries, as Canal's producer writes one."""
    body = _PACKET["Messages"](messages=entries).SerializeToString()
    packet: bytes = _PACKET["Packet"](
        magic_number=17, version=1, type=MESSAGES, compression=1, body=body
    ).SerializeToString()
    return packet


def read_entry(raw: bytes) -> Any:
    """Raises BadMessage."""
    try:
        return _entry(raw)
    except DecodeError as error:
        raise BadMessage(f"not an entry of Canal: {_line(error)}") from error


def table_of(entry: Any) -> TableName:
    """The table that an entry's header names, its parts empty where it names none."""
    header = entry.header
    return TableName(header.schemaName, header.tableName)


def kind_of(entry: Any) -> Kind:
    """The kind of an entry; raises BadMessage."""
    kind = entry.entryType
    if kind in MARKS:
        return Kind.NOTHING
    table = table_of(entry)
    if kind not in (0, ROWDATA):
        raise BadMessage(f"{table}: a Canal entry of unknown type {kind}")
    if not entry.storeValue:
        raise BadMessage(
            f"{table}: an entry without content: Canal could not read the table's definition"
        )
    event = entry.header.eventType or UPDATE
    if event <= DELETE:
        if not table.database or not table.table:
            part = "table" if table.database else "database"
            raise BadMessage(f"a Canal entry of type {_name(_EVENTS, event)} without a {part}")
        return Kind.ROWS
    try:
        head = _change_head(entry.storeValue)
    except DecodeError as error:
        raise BadMessage(f"{table}: not a RowChange: {_line(error)}") from error
    if head.rowDatas:
        raise BadMessage(f"{table}: rows in an entry of type {_name(_EVENTS, event)}")
    if head.isDdl or event in _STATEMENTS:
        return Kind.DDL
    if event in REMARKS:
        return Kind.NOTHING
    raise BadMessage(f"{table}: a Canal entry of unknown event type {event}")


def end_of(value: bytes) -> TransactionEnd | None:
    """The end of a transaction behind which a packet has no change; raises BadMessage."""
    entries = reversed(heads_of(value))
    last = next((entry for entry in entries if entry.entryType not in _BETWEEN), None)
    if last is None or last.entryType != _TRANSACTIONEND:
        return None
    try:
        number = _end(last.storeValue).transactionId
    except DecodeError as error:
        raise BadMessage(f"not the end of a transaction: {_line(error)}") from error
    name = _gtid(last) or (number if number != _NO_XID else None)
    return TransactionEnd(name or None, last.header.executeTime or None)


def source_ms(value: bytes) -> int | None:
    """The earliest time of a packet's changes; raises BadMessage."""
    changes = (each for each in heads_of(value) if kind_of(each) is not Kind.NOTHING)
    return earliest(each.header.executeTime for each in changes)


def transactions_of(value: bytes) -> Transactions | None:
    """The transactions of a packet's changes, by their GTIDs; raises BadMessage."""
    return transactions_among([_gtid(each) for each in heads_of(value) if each.entryType in _ROWS])


def _gtid(entry: Any) -> str:
    """The set of all transactions up to an entry's, where Canal reads by GTIDs, else empty."""
    gtid: str = entry.header.gtid.decode(errors="replace")
    return gtid


def row_change(entry: Any) -> Any:
    """The RowChange of an entry; raises BadMessage."""
    try:
        return _change(entry.storeValue)
    except DecodeError as error:
        raise BadMessage(f"not a RowChange: {_line(error)}") from error
