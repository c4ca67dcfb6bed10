"""The pointers of a JDBC catalog, of either of its schemas."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from changes.model.model import TargetName
from sparkwriter.iceberg.sink import IcebergWriter
from tests.sparkwriter.sql.test_together import Several

pytestmark = pytest.mark.integration
B = [(1, "b", 2)]


@pytest.fixture
def several(tmp_path: Path, target: TargetName, orders: Any) -> Several:
    return Several(tmp_path, target, orders)


@pytest.mark.parametrize("version", ["V0", "V1"])
def test_both_schemas_of_a_catalog(spark, several, rows, tmp_path: Path, version: str) -> None:
    """The older one does not say what a row is of."""
    catalog, uri = f"old{version}", f"jdbc:sqlite:{tmp_path / 'catalog.db'}"
    settings = {
        f"spark.sql.catalog.{catalog}": "org.apache.iceberg.spark.SparkCatalog",
        f"spark.sql.catalog.{catalog}.type": "jdbc",
        f"spark.sql.catalog.{catalog}.uri": uri,
        f"spark.sql.catalog.{catalog}.cache-enabled": "false",
        f"spark.sql.catalog.{catalog}.warehouse": str(tmp_path / "lake"),
    }
    if version == "V1":
        settings[f"spark.sql.catalog.{catalog}.jdbc.schema-version"] = "V1"
    writer = IcebergWriter(spark, settings=settings)
    for through, value in ((1, "a"), (2, "b")):
        batches = several.batches(("U", 1, value, through), through=through)
        writer.write_together([replace(b, target=b.target._replace(sink=catalog)) for b in batches])
    with sqlite3.connect(tmp_path / "catalog.db") as opened:
        columns = [row[1] for row in opened.execute("PRAGMA table_info(iceberg_tables)")]
    assert ("iceberg_type" in columns) == (version == "V1")
    for name in several.names:
        where = f"{catalog}.{name.namespace}.{name.table}"
        found = writer._lake._spark.sql(f"SELECT * FROM {where}").collect()
        assert [tuple(row) for row in found] == B
