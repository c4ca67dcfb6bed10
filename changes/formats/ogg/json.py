"""Decodes Oracle GoldenGate's JSON messages: a row of a table, or its truncation each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
from msgspec import Raw, Struct

from changes.formats.engine import json_text as glance
from changes.formats.engine.format import Confidence, DeclaredTypes, Packed
from changes.formats.engine.images import RowImage
from changes.formats.engine.json_rows import JsonRows, image_of
from changes.formats.engine.json_text import why_not
from changes.formats.engine.layout import Refused
from changes.formats.engine.row_format import DDL, JsonFormat
from changes.model.model import (
    BadMessage,
    Ddl,
    Head,
    Kind,
    TableName,
    TruncateTable,
)

LETTERS = {"I": "I", "U": "U", "D": "D", "PK": "U"}
"""The letter of a change by ``op_type``; PK is a changed key in older handlers."""
_TRUNCATE = "T"


class Message(Struct, gc=False):
    """A message with nothing assumed about its columns."""

    table: str | None = None
    op_type: str = ""
    op_ts: Any = None
    primary_keys: Raw = Raw()
    before: dict[str, Raw] | None = None
    after: dict[str, Raw] | None = None


class _Times(Struct, gc=False):
    op_ts: Any = None


class _Timed(Struct, gc=False):
    """What ``source_ms`` asks a message for."""

    table: str | None = None
    op_type: str = ""
    op_ts: Any = None


_message = msgspec.json.Decoder(Message)
_times = msgspec.json.Decoder(_Times).decode
_all_timed = msgspec.json.Decoder(list[_Timed]).decode
_key_names = msgspec.json.Decoder(list[str] | None)


class OggRows(JsonRows):
    """The ``Rows`` of GoldenGate."""

    letters: Mapping[str, str] = LETTERS
    members: Mapping[str, str] = {
        "kind": "op_type",
        "now": "after",
        "was": "before",
        "names": "primary_keys",
    }
    deletes_by_was = True

    def images(self, value: bytes) -> Iterator[RowImage]:
        message = read_message(value)
        if message.op_type not in LETTERS:
            raise Refused(f"unknown op_type {message.op_type!r}")
        op = LETTERS[message.op_type]
        row = message.before if op == "D" else message.after
        if row is None:
            image = "before" if op == "D" else "after"
            raise Refused(f"a message of op_type {message.op_type} without {image}")
        was = message.before if op == "U" else None
        names = message.primary_keys
        yield image_of(op, row, was, _keys(names), bytes(names))


def read_message(value: bytes) -> Message:
    """Raises Refused where the value is no such message."""
    try:
        return _message.decode(value)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise Refused(f"not a GoldenGate message: {why_not(value, error)}") from error


def table_name(name: str | None) -> TableName | None:
    """``SCHEMA.TABLE``, or with a container before it, which then belongs to the schema's name."""
    schema, _, table = (name or "").rpartition(".")
    return TableName(schema, table) if schema and table else None


def _keys(names: Raw) -> tuple[str, ...]:
    try:
        return tuple(_key_names.decode(names) or ()) if bytes(names) else ()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Refused(f"primary_keys is not a list of names: {error}") from error


class _First(Struct, gc=False):
    table: str | None = None
    op_type: str = ""


class OggJson(JsonFormat):
    """The ``Format`` of GoldenGate's JSON; raises ValueError where the time zone isn't known here.

    The option ``default_database`` is the schema of tables that are named without one,
    ``default_table`` the table of messages that name none. A tombstone says nothing: the delete
    came before it.
    """

    name: str = "ogg-json"
    column_types = DeclaredTypes.NONE
    maker = "GoldenGate"
    first = _First

    @staticmethod
    def recognise(record: Packed) -> Confidence:
        if glance.is_empty(record.value):
            return Confidence.OPEN
        found = glance.members(record.value)
        op = glance.word(found, "op_type")
        if op not in LETTERS and op != _TRUNCATE:
            return Confidence.NO
        if glance.word(found, "table") and found.keys() & {"op_ts", "current_ts", "pos"}:
            return Confidence.CERTAIN
        return Confidence.LIKELY if found.keys() & {"before", "after", "table"} else Confidence.OPEN

    def judge(self, first: _First) -> Head:
        if first.op_type not in LETTERS and first.op_type != _TRUNCATE:
            what = f"of unknown op_type {first.op_type!r}" if first.op_type else "without op_type"
            raise BadMessage(f"a GoldenGate message {what}")
        table = self._named(first.table)
        return DDL if first.op_type == _TRUNCATE else Head(Kind.ROWS, table)

    def _named(self, name: str | None) -> TableName:
        table = table_name(name)
        if table is not None:
            return table
        plain = name or self._table
        if plain and self._database and "." not in plain:
            return TableName(self._database, plain)
        missing = "default_table" if self._database and not plain else "default_database"
        raise BadMessage(
            f"a GoldenGate message of table {name!r}: SCHEMA.TABLE is required, and no {missing} "
            "is set"
        )

    def ddl(self, value: bytes) -> tuple[Ddl, ...]:
        try:
            table = self._named(read_message(value).table)
        except Refused as refused:
            raise BadMessage(str(refused)) from refused
        return (Ddl(table, f"TRUNCATE TABLE {table}", (TruncateTable(),)),)

    def moment(self, value: bytes) -> int | None:
        """``op_ts``: the database's clock, read in its zone."""
        try:
            op_ts = _times(value).op_ts
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise Refused(f"not a GoldenGate message: {why_not(value, error)}") from error
        return _unix_ms(op_ts, ZoneInfo(self._options.time_zone))

    def source_ms(self, value: bytes | None) -> int | None:
        try:
            if value is None:
                return None
            self.judge(self._first(value))
            return self.moment(value)
        except (BadMessage, Refused, msgspec.DecodeError, ValueError, RecursionError):
            return None

    def times_of(self, values: Sequence[bytes]) -> Sequence[int | None]:
        try:
            found = _all_timed(b"[" + b",".join(values) + b"]")
        except (msgspec.DecodeError, ValueError, RecursionError):
            found = []
        if len(found) != len(values):
            return super().times_of(values)
        zone = ZoneInfo(self._options.time_zone)
        good = {head: self._is_good(*head) for head in {(one.table, one.op_type) for one in found}}
        return [
            _unix_ms(one.op_ts, zone) if good[one.table, one.op_type] else None for one in found
        ]

    def _is_good(self, table: str | None, op_type: str) -> bool:
        try:
            self.judge(_First(table, op_type))
        except BadMessage:
            return False
        return True

    def rows(self, *, placed: bool = False) -> OggRows:
        return OggRows()


def _unix_ms(op_ts: object, zone: ZoneInfo) -> int | None:
    """A text as a moment; ``zone``: of one that names none."""
    if not isinstance(op_ts, str):
        return None
    try:
        when = datetime.fromisoformat(op_ts)
        if when.tzinfo is None:
            when = when.replace(tzinfo=zone)
        return round(when.timestamp() * 1000)
    except (ValueError, OverflowError):
        return None
