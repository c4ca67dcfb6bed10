"""Reads any Debezium record, slowly and exactly, with nothing assumed about its columns.

An envelope with or without schema, a flattened row, a tombstone, or a side topic's record.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec
from msgspec import Raw

from changes.formats.debezium.layout import NULL, string_of
from changes.formats.debezium.parts import (
    WRAPPED,
    Members,
    columns_of,
    field_of,
    members,
    prefix_of,
    side_topic,
)
from changes.formats.debezium.places import EnvelopeSource, Names, row_spelled
from changes.formats.debezium.types import Field
from changes.formats.engine.format import Packed, unpack
from changes.formats.engine.heads import foreign
from changes.formats.engine.layout import Refused
from changes.model.model import Kind, TableName

LETTERS = {"c": "I", "r": "I", "u": "U", "d": "D"}
"""By Debezium's op the letter of a row's change."""

_ENVELOPE = frozenset(
    ("before", "after", "source", "op", "ts_ms", "ts_us", "ts_ns", "transaction", "message")
)
_MYSQL = frozenset(("mysql", "mariadb", "ticdc"))
MARKS = frozenset(("__op", "__deleted", "__table", "__db", "__schema"))
"""Members that identify a row without an envelope."""

_METADATA = re.compile(
    r"__(op|deleted|table|db|schema|lsn|ts_ms|ts_us|ts_ns|name|connector|version|snapshot|sequence"
    r"|txId|xmin|server_id|gtid|file|pos|row|thread|query|collection"
    r"|source_.+|transaction_.+|dbz__.+)"
)
"""Members of a flattened row that are no columns."""


@dataclass(frozen=True, slots=True)
class Tombstone:
    """A tombstone: the deletion of a key, in a table that it does not name for certain."""

    key: bytes | None
    """The record's key, None where there is none, or an empty one."""
    schema_name: str | None = None
    """The name of the key's schema, which is made of a table's."""

    @property
    def text(self) -> str:
        """The key as text, to search it for names."""
        return (self.key or b"").decode(errors="replace")


@dataclass(frozen=True)
class Record:
    """A record. ``letter`` is I, U or D of ROWS, else what the envelope or the topic calls it.

    A tombstone's is D, and it has no table: see ``debezium.tombstones``.
    """

    kind: Kind
    letter: str
    table: TableName | None = None
    before: Members | None = None
    after: Members | None = None
    payload: Members | None = None
    fields: Mapping[str, Field] | None = None
    prefix: bytes | None = None
    """The bytes before the payload; empty without a schema, None where unknown."""
    added: tuple[str, ...] | None = None
    """The members of a flattened row that are no columns; None for other records."""
    tombstone: Tombstone | None = None
    named_by: str | None = None
    """The name of the row's schema, where only that names the table, and could be another's."""


def read(packed: bytes, names: Names) -> Record:
    """Raises Refused where it is no record that binlogd knows."""
    try:
        parts = unpack(packed)
    except ValueError as error:
        raise Refused(str(error)) from error
    value = parts.value
    if value is None or value.strip() in (b"", NULL):
        return _tombstone(parts)
    top = members(value, "the value")
    if top.keys() <= WRAPPED and "payload" in top:
        if bytes(top["payload"]) == NULL:
            return _tombstone(parts)
        field = field_of(top.get("schema"), "value")
        prefix = prefix_of(value, bytes(top["payload"]))
        try:
            return _judged(members(bytes(top["payload"]), "the payload"), field, prefix, names)
        except Refused as refused:
            _name_foreign(top, refused)
            raise
    return _judged(top, None, b"", names)


def _tombstone(parts: Packed) -> Record:
    """A tombstone. An unreadable key is passed on: its delete may have the same one."""
    key, name = parts.key, None
    if key is not None:
        try:
            top = members(key, "the record key")
            field = field_of(top.get("schema"), "key") if top.keys() <= WRAPPED else None
            name = field.name if field else None
            key = None if bytes(top.get("payload", Raw(b"{}"))) == NULL else key
        except Refused:
            name = None
    return Record(Kind.ROWS, "D", tombstone=Tombstone(key, name))


def _judged(found: Members, field: Field | None, prefix: bytes | None, names: Names) -> Record:
    if is_envelope(found):
        return _envelope(found, field, prefix, names)
    if found.keys() & MARKS:
        return _flat(found, field, prefix, names)
    if "ddl" in found and ("databaseName" in found or "tableChanges" in found):
        source = _source(found)
        mysql = source is None or source.connector is None or source.connector.lower() in _MYSQL
        return Record(Kind.DDL if mysql else Kind.NOTHING, "ddl", payload=found)
    _name_foreign(found)
    side = side_topic(found, None if field is None else field.name)
    if side is not None:
        return Record(Kind.NOTHING, side, payload=found)
    return _flat(found, field, prefix, names)


def _name_foreign(found: Members, refused: Refused | None = None) -> None:
    """Raise Refused where it is a record of a writer that is not read, and whose it is is known."""
    if (whose := foreign(found)) is not None:
        raise Refused(f"{whose}, which is not read") from refused


def is_envelope(found: Members) -> bool:
    """Whether it is an envelope, not a flattened row whose columns have the same names."""
    if "op" not in found:
        return False
    if any(_is_object(found, name) for name in ("before", "after")):
        return True
    if found.keys() & MARKS:
        return False
    return _is_object(found, "source") or found.keys() <= _ENVELOPE


def _is_object(found: Members, name: str) -> bool:
    return name in found and bytes(found[name]).startswith(b"{")


def _envelope(found: Members, field: Field | None, prefix: bytes | None, names: Names) -> Record:
    op = _text(found, "op") or ""
    letter = LETTERS.get(op.lower(), op.lower())
    if letter == "m":
        return Record(Kind.NOTHING, "message")
    if letter not in "IUDt" or len(letter) != 1:
        raise Refused(f"unknown op {op!r}")
    source = _source(found) or EnvelopeSource()
    if source.collection is not None and not source.table:
        raise Refused("a document of MongoDB, which is not read")
    table = source.name(names) or names.default
    if table is None:
        raise Refused(
            "the envelope's source names no table, and no default_database and default_table is set"
        )
    if letter == "t":
        return Record(Kind.DDL, "t", table, payload=found)
    fields = columns_of(field)
    row = fields.get("after") or fields.get("before")
    before, after = (_image(found, name) for name in ("before", "after"))
    columns = columns_of(row) if row else None
    return Record(Kind.ROWS, letter, table, before, after, found, columns, prefix)


def _image(found: Members, name: str) -> Members | None:
    raw = bytes(found.get(name, Raw(NULL)))
    if raw == NULL:
        return None
    if raw.startswith(b'"'):
        raise Refused(f"{name} is text and no row (a document of MongoDB is not read)")
    return members(raw, name)


def _flat(found: Members, field: Field | None, prefix: bytes | None, names: Names) -> Record:
    """A row of ExtractNewRecordState: the columns, and what its options add.

    Without marks or a schema it may be anything, a schema's own text as well.
    """
    if field is not None and (field.name or "").endswith(".Key"):
        raise Refused("a record key in the place of a value")
    if not (found.keys() & MARKS or columns_of(field)):
        raise Refused(
            "neither an envelope of Debezium's nor a row with a schema: have the connector mark its"
            " rows (add.fields=op,table), or send schemas (schemas.enable)"
        )
    own = EnvelopeSource(
        None,
        _text(found, "__db") or _text(found, "__source_db"),
        _text(found, "__schema") or _text(found, "__source_schema"),
        _text(found, "__table") or _text(found, "__source_table") or names.table,
    )
    spelled, doubtful = row_spelled(field.name if field else None, own.table)
    table = own.name(names) or spelled or names.default
    named_by = field.name if field and doubtful and table is spelled else None
    if table is None:
        raise Refused(
            "a flattened row that names no table, and no default_database and default_table is set"
        )
    row = {name: raw for name, raw in found.items() if not _METADATA.fullmatch(name)}
    gone = bytes(found.get("__deleted", Raw(NULL))) in (b'"true"', b"true")
    letter = "D" if gone else LETTERS.get((_text(found, "__op") or "u").lower())
    if letter is None:
        raise Refused(f"unknown op {_text(found, '__op')!r}")
    columns = {n: each for n, each in columns_of(field).items() if not _METADATA.fullmatch(n)}
    before, after = (row, None) if letter == "D" else (None, row)
    added = tuple(sorted(found.keys() - row.keys()))
    return Record(
        Kind.ROWS, letter, table, before, after, found, columns or None, prefix, added,
        named_by=named_by,
    )  # fmt: skip


def _source(found: Members) -> EnvelopeSource | None:
    raw = found.get("source")
    if raw is None or bytes(raw) == NULL:
        return None
    try:
        return msgspec.json.decode(raw, type=EnvelopeSource)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Refused(f"the envelope's source is not one: {error}") from error


def _text(found: Members, name: str) -> str | None:
    raw = bytes(found.get(name, Raw(NULL)))
    return string_of(raw) if raw.startswith(b'"') else None
