"""Both protobuf formats on messages that another encoder wrote, against the tables they lead to."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from changes.formats import FORMATS
from changes.formats.engine.format import Chunked, Format, pack, unpack
from changes.model.model import HAS_PREFIX, OP, FormatOptions, Kind, Mode, TableName
from offsets.parts import PartAssembler
from offsets.position import TopicPartition
from tests.changes import conformance
from tests.changes.formats.mutator import bad_place, mutants, read

SOURCE = TopicPartition("binlog", 0)
MUTANTS = 1_500
VECTORS = [
    *conformance.cases("synthetic-vectors/canal*.json", of="canal-protobuf"),
    *conformance.cases("synthetic-vectors/dts*.json", of="tencent-dts"),
]


def made(path: Path) -> Format:
    name = "canal-protobuf" if path.name.startswith("canal") else "tencent-dts"
    return FORMATS[name](FormatOptions())


def records(path: Path, format_: Format) -> list[bytes]:
    """The records as the source gives them; one that the producer sent again is left out."""
    found: dict[tuple[str, str], bytes] = {}
    for place, record in enumerate(json.loads(path.read_text())["records"]):
        value, headers = bytes.fromhex(record["value_hex"]), record["headers"]
        told = headers.get("ShardId", ""), headers.get("ps", str(place))
        pairs = [(name, text.encode()) for name, text in headers.items()]
        found.setdefault(told, pack(None, value, pairs) if format_.keyed else value)
    return list(found.values())


def whole(format_: Format, values: list[bytes]) -> Iterator[bytes]:
    parts = PartAssembler(1 << 20)
    parts.begin(SOURCE, at_frontier=False)
    for offset, value in enumerate(values):
        found = format_.part(value) if isinstance(format_, Chunked) else None
        if found is None:
            yield value
        elif done := parts.take(SOURCE, found[0], offset, found[1]):
            assert isinstance(format_, Chunked)
            yield format_.reassembled(value, done.data)


def tables(format_: Format, values: Iterator[bytes]) -> dict[str, list[dict[str, Any]]]:
    """What the messages lead to, a table's rows by their key."""
    rows: dict[str, dict[Any, dict[str, Any]]] = {}
    decoders: dict[TableName, Any] = {}
    columns: dict[str, dict[str, None]] = {}
    for value in values:
        kind, table = format_.peek(value)
        if kind is Kind.DDL:
            for ddl in format_.ddl(value):
                known = columns.setdefault(str(ddl.table), {})
                known |= dict.fromkeys(step.column.name for step in ddl.steps)  # type: ignore[union-attr]
        if table is None:
            continue
        decoder = decoders.setdefault(table, format_.table_decoder(Mode.UPSERT, None))
        changes = decoder.decode(0, [0], [value])
        (key,) = changes.schema.keys
        mine = rows.setdefault(str(table), {})
        columns.setdefault(str(table), {}).update(
            dict.fromkeys(changes.schema.columns and [c.name for c in changes.schema.columns])
        )
        for row in changes.table.to_pylist():
            if row[OP] == "D":
                mine.pop(row[key], None)
                continue
            kept = {
                c: v
                for c, v in row.items()
                if not c.startswith("__") and row.get(HAS_PREFIX + c, True)
            }
            origin = row.get("__binlogd_from")
            assert origin is None or len(kept) >= 2
            mine[row[key]] = mine.get(row[key], {}) | kept
    return {
        name: [dict.fromkeys(columns[name]) | row for row in found.values()]
        for name, found in rows.items()
    }


def same(value: object) -> object:
    """A value to compare: points in time and numbers as such, bytes as the file writes them."""
    match value:
        case bytes():
            return {"hex": value.hex()}
        case Decimal():
            return (
                int(value)
                if value == value.to_integral_value() and not value.as_tuple().exponent
                else f"{value:f}"
            )
        case datetime() if value.tzinfo is not None:
            text = value.astimezone(UTC).replace(tzinfo=None).isoformat(" ")
            return f"{text} +00:00"
        case datetime():
            return value.isoformat(" ")
        case date():
            return value.isoformat()
    return value


def told(value: object) -> object:
    """A TIME is kept without the zeros behind its seconds."""
    if isinstance(value, str) and value.endswith(":59.000"):
        return value.removesuffix(".000")
    return value


@pytest.mark.parametrize("path", VECTORS)
def test_final_tables(path: Path) -> None:
    """Inserts, updates, minimal images, key changes, deletes, statements, parts, shards."""
    format_ = made(path)
    found = tables(format_, whole(format_, records(path, format_)))
    expected = json.loads(path.read_text())["final_tables"]
    assert {
        name: [{c: same(v) for c, v in row.items()} for row in rows] for name, rows in found.items()
    } == {
        name: [{c: told(v) for c, v in row.items()} for row in table["rows"]]
        for name, table in expected.items()
    }


@pytest.mark.parametrize("path", conformance.cases("synthetic-vectors/*.json"))
def test_damaged_messages(path: Path) -> None:
    """Only BadMessage and BadRecord come out, and in a call of many at the damaged one's place."""
    conformance.folder()
    format_ = made(path)
    good = records(path, format_)
    for value in mutants(inner(format_, good), MUTANTS, seed=8):
        read(format_, pack(None, value, HEADERS) if format_.keyed else value)
    rows = [value for value in good if format_.peek(value).kind is Kind.ROWS][:1]
    for value in mutants(inner(format_, rows), MUTANTS // 10, seed=9):
        damaged = pack(None, value) if format_.keyed else value
        assert bad_place(format_, [*rows, damaged, *rows]) in (None, 1)


HEADERS = [("ShardId", b"a"), ("ps", b"1")]


def inner(format_: Format, values: list[bytes]) -> list[bytes]:
    """The values that lie in packed records."""
    return [unpack(value).value or b"" for value in values] if format_.keyed else values
