"""What Kafka Connect is given, the flat rows, and how the end is seen."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from bench.peers.connect_sink import connector, flat, schema, visible_rows
from bench.peers.connect_worker import properties
from tests.bench.peers.jobs import COLUMNS, job


def test_each_row_of_a_message_becomes_one() -> None:
    """As it is in the message, without what is around it, in order."""
    rows = [{"id": "1", "name": None}, {"id": "2", "name": "ß"}]
    value = json.dumps({"type": "INSERT", "table": "t0", "old": None, "data": rows}).encode()
    assert [(key, json.loads(one)) for key, one in flat(value)] == [(None, row) for row in rows]


def test_the_connector_writes_to_the_jobs_catalog(tmp_path: Path) -> None:
    """The catalog's class in place of its type, which the sink's own catalogs don't know."""
    told = connector(job(tmp_path), "flat", "connect-1")
    assert told["topics"] == "flat"
    assert told["iceberg.tables"] == "bench.t0"
    assert told["iceberg.catalog"] == "lake"
    assert {key: value for key, value in told.items() if key.startswith("iceberg.catalog.")} == {
        "iceberg.catalog.catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
        "iceberg.catalog.uri": f"jdbc:sqlite:{tmp_path}/catalog.db",
        "iceberg.catalog.jdbc.schema-version": "V1",
        "iceberg.catalog.warehouse": f"{tmp_path}/warehouse",
    }


def test_the_worker_listens_here_only(tmp_path: Path) -> None:
    """And keeps its offsets in the job's folder."""
    told = properties(job(tmp_path), 8083, tmp_path / "plugins")
    assert told["listeners"] == "http://127.0.0.1:8083"
    assert told["plugin.path"] == f"{tmp_path}/plugins"
    assert told["offset.storage.file.filename"] == f"{tmp_path}/scratch/offsets"


def test_a_schema_has_icebergs_types(tmp_path: Path) -> None:
    """Numbered from 1, none required."""
    fields = schema(job(tmp_path).tables[0])["fields"]
    assert [(field["id"], field["name"], field["type"]) for field in fields] == [
        (1, "id", "long"),
        (2, "name", "string"),
        (3, "amount", "decimal(10,2)"),
        (4, "created", "timestamp"),
    ]
    assert len(fields) == len(COLUMNS)
    assert not any(field["required"] for field in fields)


@pytest.mark.parametrize(
    ("newest", "rows"), [(None, 0), (-1, 0), (7, 100), (9, 250)], ids=["no", "none", "old", "new"]
)
def test_rows_are_those_of_the_newest_snapshot(
    tmp_path: Path, newest: int | None, rows: int
) -> None:
    """Of a table without a snapshot, none."""
    snapshots = [
        {"snapshot-id": number, "summary": {"total-records": str(count)}}
        for number, count in ((7, 100), (9, 250))
    ]
    metadata = tmp_path / "00001.metadata.json"
    metadata.write_text(json.dumps({"current-snapshot-id": newest, "snapshots": snapshots}))
    with closing(sqlite3.connect(tmp_path / "catalog.db")) as catalog:
        catalog.execute(
            "CREATE TABLE iceberg_tables (catalog_name TEXT, table_namespace TEXT,"
            " table_name TEXT, metadata_location TEXT)"
        )
        catalog.executemany(
            "INSERT INTO iceberg_tables VALUES (?, 'bench', 't0', ?)",
            [("other", "/nowhere"), ("lake", f"file:{metadata}")],
        )
        catalog.commit()
    assert visible_rows(str(tmp_path / "catalog.db"), "t0") == rows
