"""Records in Avro as a real converter writes them, and as binlogd reads them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fastavro import parse_schema

from bench.compare.debezium_avro import avro_schema, value_schema
from bench.compare.messages import records
from bench.compare.rows import texts
from bench.compare.workloads import Workload, stream, workloads
from bench.peers.streaming import wanted_schema
from changes.formats.engine.format import pack
from changes.formats.wire.format import Debezium
from changes.formats.wire.schemas import Schema
from changes.model.model import Mode
from tests.changes.formats.recordings.recorded import recording
from tests.changes.formats.wire.records import Kept

SMALL = replace(workloads(0.001)["wide-avro"], changes=400, tables=3)


def schema_of(form: str, table: str) -> Any:
    """The schema of a table's first record, as it was recorded."""
    recorded = recording("mariadb", form)
    value = next(one.value for one in recorded.of(f"s.{table}") if one.value)
    if form == "json":
        return json.loads(value)["schema"]
    number = str(int.from_bytes(value[1:5], "big"))
    (text,) = (each.text for name, each in recorded.schemas.items() if name.value == number)
    return json.loads(text)


@pytest.mark.parametrize("table", ["last", "moved", "nokey"])
def test_schemas_are_those_of_confluents_converter(table: str) -> None:
    """The same Connect schema, as it was recorded in JSON and in Avro."""
    # Dots and dashes in the names of the two connectors differ.
    connect = json.loads(json.dumps(schema_of("json", table)).replace("mariadb-json", "m"))
    written = json.loads(json.dumps(schema_of("avro", table)).replace("mariadb_avro", "m"))
    assert parse_schema(avro_schema(connect)) == parse_schema(written)


def kept_records(workload: Workload, folder: Path) -> tuple[Kept, list[tuple[int, bytes, bytes]]]:
    """The workload's records, their schemas kept as binlogd keeps them: table, key, value."""
    kept = Kept(folder)

    def register(_subject: str, schema: str) -> int:
        return int(kept.keep(Schema("AVRO", schema)).value)

    return kept, [(one.table, one.key or b"", one.value) for one in records(workload, register)]


def test_binlogd_reads_the_stream(tmp_path: Path) -> None:
    """Each row, in order, whole."""
    kept, written = kept_records(SMALL, tmp_path)
    decoder = Debezium(kept.options()).table_decoder(Mode.UPSERT, None)
    given = [pack(key, value) for table, key, value in written if table == 0]
    changes = decoder.decode(0, list(range(len(given))), given)
    assert changes is not None
    wanted = [group.rows[0] for group in stream(SMALL) if group.table == 0]
    assert [
        (str(row["id"]), row["name"] and {name: str(row[name]) for name in texts(0, 0)})
        for row in changes.table.to_pylist()
    ] == [
        (str(row.key), None if row.after is None else texts(row.key, row.after)) for row in wanted
    ]


def test_each_table_has_a_schema_of_its_own(tmp_path: Path) -> None:
    """Under the subjects of its topic, as the converter's default has them."""
    told: list[tuple[str, str]] = []

    def register(subject: str, schema: str) -> int:
        told.append((subject, json.loads(schema)["connect.name"]))
        return len(told)

    values = [one.value for one in records(SMALL, register)]
    assert sorted(told) == [
        (f"wide-avro.bench.t{table}-{part}", f"source.bench.t{table}.{name}")
        for table in range(3)
        for part, name in (("key", "Key"), ("value", "Envelope"))
    ]
    assert len({value[:5] for value in values}) == 3
    assert 150 < sum(map(len, values)) / len(values) < 250


def test_the_expert_wants_what_is_written() -> None:
    """A field that the writer has not would be null in silence."""
    (table, *_) = SMALL.specs
    written, wanted = (
        {field["name"]: field["type"] for field in made["fields"]}
        for made in (value_schema(table.name, table.columns), wanted_schema(table))
    )
    assert wanted.keys() < written.keys()
    told = [field["name"] for field in written["before"][1]["fields"]]
    assert [field["name"] for field in wanted["after"][1]["fields"]] == told
    assert [field["name"] for field in wanted["before"][1]["fields"]] == list(table.key)
