"""Reads the time of a change, and its position in the source's log, from its record."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import msgspec
from msgspec import Raw, Struct

from changes.formats.engine.json_text import milliseconds
from changes.formats.engine.layout import Refused
from changes.model.model import TableName
from changes.model.places import NOWHERE
from changes.model.places import Place as SourcePlace
from changes.model.positions import position_text

_members = msgspec.json.Decoder(dict[str, Raw])
_TIME, _SNAPSHOT = attrgetter("ts_ms"), attrgetter("snapshot")


class SourceTime(Struct, gc=False):
    """When a record's change happened, in its ``source``, and whether it was read from a table."""

    ts_ms: Any = None
    snapshot: str | bool | None = None


class LogPlace(SourceTime, gc=False):
    """With it, where in PostgreSQL's log the change is."""

    lsn: int | None = None


def place_texts(places: Sequence[LogPlace | None]) -> list[str] | None:
    """The positions of records, None where any of them has none."""
    numbers = [place.lsn for place in places if place is not None and place.lsn is not None]
    if len(numbers) < len(places) or min(numbers) < 0:
        return None
    return list(map(position_text, numbers))


def position_of(found: Mapping[str, Raw]) -> str:
    """The position of a change in PostgreSQL's log: each change of a key has its own LSN.

    Raises Refused where the record has none.
    """
    try:
        inner: Mapping[str, Raw] = _members.decode(found["source"]) if "source" in found else {}
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        inner = {}
    for where, name in ((inner, "lsn"), (found, "__source_lsn"), (found, "__lsn")):
        text = bytes(where[name]) if name in where else b""
        if text.isdigit() and len(text) < 21:
            return position_text(int(text))
    raise Refused("the record has no source.lsn, which the configured positions are")


LIVE = (b"", b"null", b"false", b'"false"')
"""What ``source.snapshot`` holds in records that come from the source's log."""


_LIVE = frozenset((None, False, "false"))
"""The same as ``LIVE``, decoded."""


def times_of(ops: Sequence[str], sources: Sequence[SourceTime | None]) -> Sequence[object]:
    """What envelopes say of the source's time; empty where one was read from a table, or has no
    source."""
    if "r" in ops or not all(sources) or not _LIVE.issuperset(map(_SNAPSHOT, sources)):
        return ()
    return list(map(_TIME, sources))


class _Source(Struct, gc=False):
    ts_ms: Raw = Raw(b"")
    snapshot: Raw = Raw(b"")
    gtid: Raw = Raw(b"")
    file: Raw = Raw(b"")
    pos: Raw = Raw(b"")
    lsn: Raw = Raw(b"")
    txId: Raw = Raw(b"")
    connector: Raw = Raw(b"")


class _Flat(Struct, gc=False):
    """A record that is flattened: its columns may have any name that an envelope's members have."""

    payload: Raw = Raw(b"")
    flat_time: Raw = msgspec.field(default=Raw(b""), name="__source_ts_ms")
    flat_snapshot: Raw = msgspec.field(default=Raw(b""), name="__source_snapshot")
    flat_gtid: Raw = msgspec.field(default=Raw(b""), name="__source_gtid")
    flat_file: Raw = msgspec.field(default=Raw(b""), name="__source_file")
    flat_pos: Raw = msgspec.field(default=Raw(b""), name="__source_pos")
    flat_lsn: Raw = msgspec.field(default=Raw(b""), name="__source_lsn")
    flat_number: Raw = msgspec.field(default=Raw(b""), name="__source_txId")
    flat_connector: Raw = msgspec.field(default=Raw(b""), name="__source_connector")
    flat_op: Raw = msgspec.field(default=Raw(b""), name="__op")

    @property
    def is_flat(self) -> bool:
        return bool(bytes(self.flat_time) or bytes(self.flat_op))

    @property
    def is_change(self) -> bool:
        """Whether it is one itself, not its payload."""
        return self.is_flat

    def told(self) -> tuple[Raw, _Source]:
        """Its letter, and its source."""
        place = self.flat_gtid, self.flat_file, self.flat_pos, self.flat_lsn
        more = self.flat_number, self.flat_connector
        return self.flat_op, _Source(self.flat_time, self.flat_snapshot, *place, *more)


class _Record(_Flat, gc=False):
    source: _Source | None = None
    op: Raw = Raw(b"")

    @property
    def is_change(self) -> bool:
        return self.source is not None or self.is_flat

    def told(self) -> tuple[Raw, _Source]:
        return _Flat.told(self) if self.is_flat else (self.op, self.source or _Source())


def _record_of(value: bytes) -> _Flat:
    """Raises what msgspec raises."""
    try:
        return msgspec.json.decode(value, type=_Record)
    except msgspec.ValidationError:  # a column named source
        return msgspec.json.decode(value, type=_Flat)


def _live_source(value: bytes) -> _Source | None:
    """The source of a record that comes from the source's log; None of rows that were read from a
    table. Raises what msgspec raises."""
    found = _record_of(value)
    if not found.is_change and bytes(found.payload).startswith(b"{"):
        found = _record_of(bytes(found.payload))
    op, source = found.told()
    return source if bytes(op) != b'"r"' and bytes(source.snapshot) in LIVE else None


def source_ms(value: bytes) -> int | None:
    """When a record's change happened by its source's clock; None where it does not say, and of
    rows that were read from a table. Raises what msgspec raises."""
    source = _live_source(value)
    return None if source is None else milliseconds(source.ts_ms)


def source_place(value: bytes) -> SourcePlace | None:
    """Where a record's change is in its source's log, as ``source_ms`` has its time."""
    found = _live_source(value)
    if found is None:
        return None
    place = SourcePlace(
        _text(found.gtid), _text(found.file), _number(found.pos), _number(found.lsn)
    )
    return None if place == NOWHERE else place


def source_transaction(value: bytes) -> str | None:
    """What the source calls a change's transaction: its GTID, or in PostgreSQL its number. Empty
    where the record does not say; None of rows that were read from a table. Raises what msgspec
    raises."""
    found = _live_source(value)
    if found is None:
        return None
    numbered = bytes(found.connector) == b'"postgresql"' and _number(found.txId) is not None
    return _text(found.gtid) or (bytes(found.txId).decode() if numbered else "")


def _text(raw: Raw) -> str | None:
    text = bytes(raw)
    return (msgspec.json.decode(text, type=str) or None) if text.startswith(b'"') else None


def _number(raw: Raw) -> int | None:
    text = bytes(raw)
    return int(text) if text.isdigit() and len(text) < 21 else None


def moment(found: Mapping[str, Raw] | None) -> int | None:
    """When the change happened (``source.ts_ms``), else when the record was written, in ms.

    Zero is what old connectors write for "unknown".
    """
    if found is None:
        return None
    try:
        inner: Any = _members.decode(found["source"]) if "source" in found else {}
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        inner = {}
    for where, name in ((inner, "ts_ms"), (found, "__source_ts_ms"), (found, "ts_ms")):
        text = bytes(where[name]).strip(b'"') if name in where else b""
        if text.isdigit() and 0 < len(text) < 18 and int(text) > 0:
            return int(text)
    return None


# Finds the table of a Debezium record.

_KEY_NAME = re.compile(r"(?:.+\.)?([^.]+)\.([^.]+)\.(?:Key|Value|Envelope)")
_SURE = re.compile(r"[^.]+\.([A-Za-z0-9-]+)\.([A-Za-z0-9-]+)\.Key")
_SURE_PART = re.compile(r"[A-Za-z0-9-]+")
_REPLACED = re.compile(r"[^A-Za-z0-9._-]")
_CUT_AT = 249
"""Characters at which Debezium cuts the beginning of a schema's name: the name of a topic."""


@dataclass(frozen=True, slots=True)
class Names:
    """The table of records that name none; None where it is not configured."""

    database: str | None = None
    table: str | None = None

    @property
    def default(self) -> TableName | None:
        """The table, where both its names are set."""
        if self.database is None or self.table is None:
            return None
        return TableName(self.database, self.table)


class EnvelopeSource(msgspec.Struct, gc=False):
    """The source of an envelope."""

    connector: str | None = None
    db: str | None = None
    schema: str | None = None
    table: str | None = None
    collection: str | None = None
    keyspace: str | None = None

    def name(self, names: Names) -> TableName | None:
        """The table as routes name it: schema or database, whichever holds tables there.

        Only SQL Server has both in one connector: then the two with a dot.
        """
        if not self.table:
            return None
        database = self.schema or self.db or self.keyspace or names.database
        if self.connector == "sqlserver" and self.schema and self.db:
            database = f"{self.db}.{self.schema}"
        return TableName(database, self.table) if database else None


def table_of(schema_name: str | None) -> TableName | None:
    """The table that a schema's name ends in: ``prefix.database.table.Key``."""
    found = _KEY_NAME.fullmatch(schema_name or "")
    return None if found is None else TableName(found[1], found[2])


def spelled_surely(key_name: str | None) -> TableName | None:
    """The only table that the name of a key's schema can mean, None where it is ambiguous.

    ``prefix.database.table.Key``, not cut, and without the sign that Debezium writes for others.
    With more dots it may have a dotted prefix, or SQL Server's three names.
    """
    found = _SURE.fullmatch(key_name or "")
    if found is None or len(found[0].removesuffix(".Key")) >= _CUT_AT:
        return None
    return TableName(found[1], found[2])


def key_spells(key_name: str, table: TableName) -> bool:
    """Whether the name of a key's schema may be of a table; others may have the same name."""
    return f".{key_name.removesuffix('.Key')}".endswith(f".{_replaced(str(table))}")


def row_spelled(value_name: str | None, table_name: str | None) -> tuple[TableName | None, bool]:
    """The table in the name of a row's schema, and whether that could be another table's, too.

    ``table_name``: the table's own name, where the row has it; the schema then has the database.
    """
    found = table_of(value_name)
    if found is None or value_name is None:
        return None, False
    stem = value_name.rpartition(".")[0]
    sure = spelled_surely(f"{stem}.Key") is not None
    before, ends, _ = stem.rpartition(f".{_replaced(table_name)}") if table_name else ("", "", "")
    if table_name is None or not ends or not stem.endswith(ends):
        return found, not sure
    database = before.rpartition(".")[2]
    return TableName(database, table_name), _SURE_PART.fullmatch(database) is None


def _replaced(name: str) -> str:
    """A name as Debezium writes it: a ``_`` for each UTF-16 unit of most signs."""
    return _REPLACED.sub(lambda sign: "_" * (1 + (sign[0] > "\uffff")), name)
