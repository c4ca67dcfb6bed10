"""Reads of ranges over JDBC, here of a SQLite file, whose driver is always there."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from changes.sql.forms import Form
from databases.base.port import JdbcOptions
from sparkwriter.session.chunks import read_chunks
from sparkwriter.session.requests import ChunkColumn, ChunkQuery, ChunkUnreadable

pytestmark = pytest.mark.integration
COLUMNS = [
    ChunkColumn("id", "long", Form.WHOLE, True),
    ChunkColumn("a `b`; ü", "string", Form.TEXT),
]


@pytest.fixture
def jdbc(tmp_path: Path) -> JdbcOptions:
    """A file with a table ``t`` of ten rows."""
    with sqlite3.connect(tmp_path / "source.db") as database:
        database.execute("CREATE TABLE t (id TEXT, v TEXT)")
        database.executemany("INSERT INTO t VALUES (?, ?)", [(str(n), f"v{n}") for n in range(10)])
    database.close()
    return JdbcOptions(
        url=f"jdbc:sqlite:{tmp_path}/source.db",
        driver="org.sqlite.JDBC",
        user="",
        password="hidden-word",
        session="SELECT 1",
    )


def part(folder: Path, name: str, where: str) -> ChunkQuery:
    return ChunkQuery(f"SELECT id AS c0, v AS c1 FROM t WHERE {where}", folder / f"{name}.parquet")


def left(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} - {"source.db"}


def test_each_part_is_a_file_of_its_own(
    spark: SparkSession, jdbc: JdbcOptions, tmp_path: Path
) -> None:
    """With its rows and their number, an empty one too; of any name, nothing else is left."""
    parts = [
        part(tmp_path, "a [1]*", "id < '3'"), part(tmp_path, "b", "id = 'none'"),
        part(tmp_path, "c ü", "id >= '3'"), part(tmp_path, "d", "1 = 0"),
    ]  # fmt: skip
    constants = [("__binlogd_op", "U"), ("it's", "'\\")]
    rows = read_chunks(spark, jdbc, parts, COLUMNS, constants=constants)
    assert rows == [3, 0, 7, 0]
    assert left(tmp_path) == {each.out.name for each in parts}
    tables = [pq.read_table(each.out) for each in parts]
    schema = pa.schema([
        pa.field("__binlogd_op", pa.string(), nullable=False),
        pa.field("it's", pa.string(), nullable=False), pa.field("id", pa.int64()),
        pa.field("a `b`; ü", pa.string()),
    ])  # fmt: skip
    assert all(table.schema.remove_metadata().equals(schema) for table in tables)
    assert tables[0].sort_by("id").to_pylist() == [
        {"__binlogd_op": "U", "it's": "'\\", "id": n, "a `b`; ü": f"v{n}"} for n in range(3)
    ]
    assert sorted(tables[2].column("id").to_pylist()) == list(range(3, 10))


def test_a_value_that_does_not_fit_leaves_no_file(
    spark: SparkSession, jdbc: JdbcOptions, tmp_path: Path
) -> None:
    """It is told, and another attempt would meet it again; the other part is gone, too."""
    columns = [COLUMNS[0], ChunkColumn("v", "int", Form.WHOLE)]
    parts = [part(tmp_path, "a", "1 = 0"), part(tmp_path, "b", "id = '7'")]
    with pytest.raises(ChunkUnreadable, match=r"'v7' does not fit .* is INT \(v\)") as told:
        read_chunks(spark, jdbc, parts, columns)
    assert not told.value.again
    assert left(tmp_path) == set()


def test_a_database_that_is_not_there_may_be_read_later(
    spark: SparkSession, tmp_path: Path, drivers: None
) -> None:
    """In one line, without the password."""
    jdbc = JdbcOptions(
        url="jdbc:postgresql://127.0.0.1:1/shop?connectTimeout=2",
        driver="org.postgresql.Driver",
        user="u",
        password="hidden-word",
        session="SELECT 1",
    )
    with pytest.raises(ChunkUnreadable) as told:
        read_chunks(spark, jdbc, [part(tmp_path, "a", "1 = 1")], COLUMNS)
    assert told.value.again
    assert "hidden-word" not in str(told.value)
    assert left(tmp_path) == set()


def test_statements_that_are_wrong_are_not_read_again(
    spark: SparkSession, jdbc: JdbcOptions, tmp_path: Path
) -> None:
    """A table that is gone, for one."""
    wrong = ChunkQuery("SELECT id AS c0, v AS c1 FROM gone", tmp_path / "a.parquet")
    with pytest.raises(ChunkUnreadable, match="gone") as told:
        read_chunks(spark, jdbc, [wrong], COLUMNS)
    assert not told.value.again


def test_times_are_micros_and_dates_are_not_moved(
    spark: SparkSession, jdbc: JdbcOptions, tmp_path: Path
) -> None:
    """Other than Spark's own defaults for Parquet, which are of 1582 and of Impala."""
    columns = [
        ChunkColumn("d", "date", Form.DATE), ChunkColumn("t", "timestamptz", Form.INSTANT),
        ChunkColumn("l", "timestamp", Form.LOCAL),
    ]  # fmt: skip
    moment = "0100-03-01 00:00:00.000001"
    query = f"SELECT '0100-03-01' AS c0, '{moment}' AS c1, '{moment}' AS c2"
    read_chunks(spark, jdbc, [ChunkQuery(query, tmp_path / "a.parquet")], columns)
    found = pq.read_table(tmp_path / "a.parquet")
    assert found.schema.field("t").type == pa.timestamp("us", "UTC")
    assert found.schema.field("l").type == pa.timestamp("us")
    (row,) = found.select(["d", "l"]).to_pylist()
    assert (str(row["d"]), str(row["l"])) == ("0100-03-01", moment)
    assert found.column("t").cast(pa.int64()) == found.column("l").cast(pa.int64())


def test_zero_dates_are_as_asked_and_an_error_in_a_key(
    spark: SparkSession, jdbc: JdbcOptions, tmp_path: Path
) -> None:
    """Keys that became null would be one."""
    one = ChunkQuery("SELECT '0000-00-00' AS c0", tmp_path / "a.parquet")
    value = ChunkColumn("d", "date", Form.DATE)
    read_chunks(spark, jdbc, [one], [value])
    assert pq.read_table(one.out).to_pylist() == [{"d": None}]
    for column, zero_dates in ((value, "error"), (value._replace(key=True), "null")):
        with pytest.raises(ChunkUnreadable, match="0000-00-00"):
            read_chunks(spark, jdbc, [one], [column], zero_dates=zero_dates)
