"""Rows that we find and delete ourselves: in the table as the engine sees it, with its files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from changes.model.errors import LostRace
from changes.model.model import OP, Column, KeyBound, TableSchema
from sparkwriter.iceberg import files as iceberg_files
from sparkwriter.iceberg import vectors as iceberg_vectors
from sparkwriter.iceberg.java import LakeTable
from sparkwriter.iceberg.section import Write
from sparkwriter.iceberg.sink import IcebergWriter
from tests.sparkwriter.conftest import way_of

BY_KEYS = (("write", Write.EQUALITY.value),)

pytestmark = [pytest.mark.integration, pytest.mark.parametrize("write", [Write.MERGE])]
ALL = "map('rewrite-all', 'true')"
Rows = Callable[..., list[tuple[object, ...]]]


@pytest.fixture
def begun(writer: IcebergWriter, staging: Any, orders: Any) -> Any:
    """The staging of a target that holds orders 1, 2 and 3, and the mark 1."""
    writer.write(staging.batch(orders(*(("U", key, "a", key) for key in (1, 2, 3))), 1))
    return staging


def files_of(spark: SparkSession, staging: Any) -> list[tuple[int, int]]:
    """Of the table's files the content (0: rows, 1: places) and the number of rows."""
    name = ".".join(staging.target)
    found = spark.sql(f"SELECT content, record_count FROM {name}.files ORDER BY 1, 2").collect()
    return [tuple(row) for row in found]


def test_vectors_grow_and_files_go(writer, begun, orders, spark, rows: Rows) -> None:
    """A file has one vector, with what the one before deleted; without a row left it is gone."""
    assert (
        way_of(writer, begun.batch(orders(("U", 2, "b", 2), ("D", 9, None, None)), 2)) == "vector"
    )
    assert files_of(spark, begun) == [(0, 1), (0, 3), (1, 1)]
    assert way_of(writer, begun.batch(orders(("D", 1, None, None)), 3)) == "vector"
    assert files_of(spark, begun) == [(0, 1), (0, 3), (1, 2)]
    assert rows(begun.target) == [(2, "b", 2), (3, "a", 3)]
    writer.write(begun.batch(orders(("U", 3, "c", 3)), 4))
    assert files_of(spark, begun) == [(0, 1), (0, 1)]
    writer.write(begun.batch(orders(("D", 2, None, None), ("D", 3, None, None)), 5))
    assert files_of(spark, begun) == []
    assert rows(begun.target) == []


def test_nothing_found_and_nothing_new(writer, begun, orders, spark) -> None:
    """Deletes of what is not there move the marks and leave the files."""
    before = files_of(spark, begun)
    state = writer.write(begun.batch(orders(("D", 7, None, None)), 2))
    assert files_of(spark, begun) == before
    assert writer.open(begun.target) == state


def test_rows_written_by_the_engine(writer, begun, orders, spark, rows: Rows) -> None:
    """Files that compaction or a statement made are read as ours are."""
    name = ".".join(begun.target)
    spark.sql(f"CALL lake.system.rewrite_data_files(table => '{name}', options => {ALL})")
    writer.write(begun.batch(None, 2))  # restamped: that commit was another's
    assert way_of(writer, begun.batch(orders(("U", 1, "b", 7)), 3)) == "vector"
    assert rows(begun.target) == [(1, "b", 7), (2, "a", 2), (3, "a", 3)]


def test_after_equality_deletes(writer, begun, orders, rows: Rows) -> None:
    """A row that a key deleted, deleted by its place once more, stays deleted."""
    writer.write(replace(begun.batch(orders(("U", 1, "b", 1)), 2), options=BY_KEYS))
    writer.write(begun.batch(orders(("U", 1, "c", 1), ("D", 2, None, None)), 3))
    writer.write(replace(begun.batch(orders(("U", 1, "d", 1)), 4), options=BY_KEYS))
    assert rows(begun.target) == [(1, "d", 1), (3, "a", 3)]


def test_keys_that_were_widened(writer, staging, spark, rows: Rows) -> None:
    """Files from before keep the old types."""
    old = pa.table({OP: ["U", "U"], "k": pa.array([1, 2], pa.int32()), "v": ["a", "b"]})
    staging.schema = TableSchema((Column("k", pa.int32()), Column("v", pa.string())), ("k",))
    writer.write(staging.batch(old, 1))
    new = pa.table({OP: ["U"], "k": pa.array([2], pa.int64()), "v": ["c"]})
    schema = TableSchema((Column("k", pa.int64()), Column("v", pa.string())), ("k",))
    assert way_of(writer, staging.batch(new, 2, schema=schema)) == "vector"
    assert rows(staging.target) == [(1, "a"), (2, "c")]


def test_a_storage_that_is_not_a_folder_here(
    writer, begun, orders, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files go and come through the table's own FileIO, vectors too."""
    monkeypatch.setattr(iceberg_files, "local_path", lambda table, location: None)
    monkeypatch.setattr(LakeTable, "is_local", False)
    for number in (2, 3):
        batch = begun.batch(orders(("U", number, "b", 9), ("D", 1, None, None)), number)
        assert way_of(writer, batch) == "vector"
    assert rows(begun.target) == [(2, "b", 9), (3, "b", 9)]


def test_what_we_cannot_read_is_looked_up_by_a_job(
    writer, begun, orders, spark, rows: Rows, warehouse: Path
) -> None:
    """A file without the columns' ids, as others make them: Iceberg maps those by name."""
    name = ".".join(begun.target)
    spark.sql(
        f"ALTER TABLE {name} SET TBLPROPERTIES ('schema.name-mapping.default' = "
        """'[{"field-id": 1, "names": ["id"]}, {"field-id": 2, "names": ["note"]},
             {"field-id": 3, "names": ["n"]}]')"""
    )
    folder = warehouse / begun.target.namespace / begun.target.table / "data"
    (file,) = folder.glob("*.parquet")
    table = pq.read_table(file)
    plain = pa.schema(pa.field(field.name, field.type) for field in table.schema)
    size = file.stat().st_size
    for padding in range(size):  # Iceberg reads as many bytes as it has noted
        with pq.ParquetWriter(file, plain, compression="zstd", store_schema=False) as without_ids:
            without_ids.write_table(pa.Table.from_arrays(table.columns, schema=plain))
            without_ids.add_key_value_metadata({"padding": "x" * padding})
        if file.stat().st_size == size:
            break
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
    assert way_of(writer, begun.batch(orders(("U", 2, "b", 2)), 2)) == "replace"
    assert rows(begun.target) == [(1, "a", 1), (2, "b", 2), (3, "a", 3)]


def test_more_files_than_are_ours_to_open(writer, begun, orders, rows: Rows, monkeypatch) -> None:
    """Counted after the key range has left out those that can't hold one."""
    writer.write(begun.batch(orders(("U", 50, "a", 50)), 2, bounds=[KeyBound("id", 50, 50)]))
    monkeypatch.setattr(iceberg_vectors, "MOST_FILES", 1)
    narrow = begun.batch(orders(("U", 50, "b", 50)), 3, bounds=[KeyBound("ID", 50, 50)])
    assert way_of(writer, narrow) == "vector"
    wide = begun.batch(orders(("U", 1, "b", 1), ("U", 50, "c", 50)), 4)
    assert way_of(writer, wide) == "replace"
    assert rows(begun.target) == [(1, "b", 1), (2, "a", 2), (3, "a", 3), (50, "c", 50)]


def test_a_table_of_an_older_format(writer, begun, orders, spark, rows: Rows, warehouse) -> None:
    """It has no vectors; one that was upgraded may have deletions that none may replace by us."""
    name = f"lake.{begun.target.namespace}.older"
    spark.sql(
        f"CREATE TABLE {name} USING iceberg TBLPROPERTIES ('format-version' = '2', "
        "'write.delete.mode' = 'merge-on-read', 'write.merge.mode' = 'merge-on-read') "
        f"AS SELECT * FROM {'.'.join(begun.target)}"
    )
    ours = dict(spark.sql(f"SHOW TBLPROPERTIES {'.'.join(begun.target)}").collect())
    for key in ("binlogd.mode", "binlogd.keys"):
        spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('{key}' = '{ours[key]}')")
    spark.conf.set("spark.sql.iceberg.snapshot-property.binlogd.hwm", '{"shop:0": 1}')
    spark.sql(f"INSERT INTO {name} VALUES (4, 'a', 4)")
    spark.conf.unset("spark.sql.iceberg.snapshot-property.binlogd.hwm")
    begun.target = begun.target._replace(table="older")
    assert way_of(writer, begun.batch(orders(("U", 2, "b", 2)), 2)) == "replace"
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('format-version' = '3')")
    assert way_of(writer, begun.batch(orders(("U", 3, "c", 3)), 3)) == "replace"
    assert way_of(writer, begun.batch(orders(("U", 1, "d", 1)), 4)) == "vector"
    assert rows(begun.target) == [(1, "d", 1), (2, "b", 2), (3, "c", 3), (4, "a", 4)]


def test_files_of_a_partitioning_that_is_gone(writer, begun, orders, spark, rows: Rows) -> None:
    """Somebody partitioned the table and took that back: what was written then has its place."""
    name = ".".join(begun.target)
    spark.sql(f"ALTER TABLE {name} ADD PARTITION FIELD note")
    writer.write(begun.batch(orders(("U", 2, "b", 2), ("U", 4, "b", 4)), 2))
    spark.sql(f"ALTER TABLE {name} DROP PARTITION FIELD note")
    assert way_of(writer, begun.batch(orders(("U", 4, "c", 4), ("U", 1, "c", 1)), 3)) == "replace"
    writer.write(begun.batch(orders(("U", 4, "d", 4), ("D", 2, None, None)), 4))
    assert rows(begun.target) == [(1, "c", 1), (3, "a", 3), (4, "d", 4)]


def test_one_that_lost_its_race_leaves_no_file(
    writer, begun, orders, spark, warehouse: Path, rows: Rows, monkeypatch
) -> None:
    """Neither rows nor vectors."""
    folder = warehouse / begun.target.namespace / begun.target.table / "data"
    before = set(folder.iterdir())
    late, other = begun.batch(orders(("U", 1, "late", 9)), 2), IcebergWriter(spark)
    update = writer._lake._statements._vectors.update

    def lose(*arguments: Any) -> Any:
        made = update(*arguments)
        assert {path.suffix for path in set(folder.iterdir()) - before} >= {".puffin", ".parquet"}
        other.write(replace(late, path=None))
        return made

    monkeypatch.setattr(writer._lake._statements._vectors, "update", lose)
    with pytest.raises(LostRace):
        writer.write(replace(late, batch_id="late"))
    assert set(folder.iterdir()) == before
    assert rows(begun.target) == [(1, "a", 1), (2, "a", 2), (3, "a", 3)]
