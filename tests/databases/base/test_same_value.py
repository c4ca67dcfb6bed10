"""A load stores what the stream stores: each type's values, by real readers and real servers."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from changes.model.model import OP, ColumnTypes
from changes.sql.spark.canonical import compared, printed
from changes.sql.spark.schema import iceberg_type
from changes.sql.spark.words import quote
from databases.reading import Reading
from databases.streamed import as_streamed
from sparkwriter.session.chunks import read_chunks
from sparkwriter.session.requests import ChunkColumn, ChunkQuery
from tests.databases.base.servers import Server
from tests.databases.base.streams import (
    RECORDED,
    TABLE,
    WAYS,
    Record,
    declared,
    decoded,
    fill,
    load,
    read_now,
)

pytestmark = pytest.mark.usefixtures("drivers")
BOOKKEEPING = "__binlogd_"


def loaded(
    spark: SparkSession, server: Server, format_: str, folder: Path, types: ColumnTypes = ()
) -> pa.Table:
    """The samples' table as a load reads it. Only of a format without types are columns refused."""
    database = server.open()
    try:
        table = database.describe(TABLE[server.kind])
        found = as_streamed(table, server.section().address.kind, format_, types)
        assert found.refused == () or format_ == "maxwell-json"
        columns = [
            ChunkColumn(one.column.name, one.type, one.column.form, one.column.name == "id")
            for one in found.columns
            if one.column.form is not None
        ]
        query = database.query(table, [one.column for one in found.columns])
        part = ChunkQuery(query, folder / "chunk.parquet")
        rows = read_chunks(spark, database.jdbc(table), [part], columns, constants=[(OP, "U")])
        read = pq.read_table(part.out)
        assert rows == [read.num_rows]
        return read
    finally:
        database.close()


def read_without_spark(server: Server, format_: str, types: ColumnTypes = ()) -> pa.Table:
    """The same through the database's own connection."""
    database = server.open()
    try:
        table = database.describe(TABLE[server.kind])
        found = as_streamed(table, server.section().address.kind, format_, types)
        reading = Reading(database, table, found.columns, "null")
        read = pa.concat_tables([reading.empty, *reading.rows()])
        return read.add_column(0, OP, pa.repeat(pa.scalar("U"), read.num_rows))
    finally:
        database.close()


def assert_same(streamed: pa.Table, read: pa.Table, *, whole: bool = True) -> None:
    """Column by column: the same lake type, and the same value in each row."""
    streamed, read = streamed.sort_by("id"), read.sort_by("id")
    assert read.column(OP).to_pylist() == ["U"] * read.num_rows
    names = [name for name in streamed.column_names if not name.startswith(BOOKKEEPING)]
    ours = [name for name in read.column_names if not name.startswith(BOOKKEEPING)]
    assert names == ours or not whole
    names = ours
    assert streamed.column("id").to_pylist() == read.column("id").to_pylist()
    wrong = []
    for name in names:
        theirs, own = streamed.column(name), read.column(name)
        if iceberg_type(theirs.type) != iceberg_type(own.type):
            wrong.append(f"{name}: {own.type}, streamed {theirs.type}")
            continue
        pairs = zip(own.to_pylist(), theirs.to_pylist(), strict=True)
        wrong += [f"{name}: {a!r}, streamed {b!r}" for a, b in pairs if repr(a) != repr(b)]
    assert not wrong, "\n".join(dict.fromkeys(wrong))


@pytest.mark.parametrize(("kind", "format_"), WAYS, ids=map("-".join, WAYS))
def test_a_load_has_the_streams_value(
    kind: str, format_: str, servers: dict[str, Server], spark: SparkSession, tmp_path: Path
) -> None:
    """Each value of each type, against what the real reader wrote of the same statements."""
    recorded = RECORDED / f"{kind}-{format_}.gz"
    server = servers[kind]
    server.run([f"DROP SCHEMA IF EXISTS {TABLE[kind].database}{_CASCADE.get(kind, '')}"])
    fill(server, format_)
    untyped = format_ == "maxwell-json"
    for types in ((), declared(kind, format_)) if untyped else ((),):
        streamed = decoded(kind, format_, load(recorded), types)
        assert_same(streamed, loaded(spark, server, format_, tmp_path, types), whole=not untyped)
        assert_same(streamed, read_without_spark(server, format_, types), whole=not untyped)


@pytest.mark.parametrize("kind", ["mariadb", "mysql", "postgresql"])
def test_a_stored_value_prints_as_the_databases_text(
    kind: str, servers: dict[str, Server], spark: SparkSession, tmp_path: Path
) -> None:
    """What a verification compares: both sides write the same text for each value of each type."""
    server = servers[kind]
    server.run([f"DROP SCHEMA IF EXISTS {TABLE[kind].database}{_CASCADE.get(kind, '')}"])
    fill(server, "debezium-json")
    loaded(spark, server, "debezium-json", tmp_path)
    stored = spark.read.parquet(str(tmp_path / "chunk.parquet"))
    database = server.open()
    try:
        table = database.describe(TABLE[kind])
        found = as_streamed(table, server.section().address.kind, "debezium-json")
        columns, shown = [one.column for one in found.columns], []
        for one in found.columns:
            assert one.column.form is not None
            form, scale = compared(one.column.form), digits_behind(one.column.type)
            shown.append(f"{printed(form, one.type, quote(one.column.name), scale)} AS t")
        ours = sorted(tuple(row) for row in stored.selectExpr(*shown).collect())
        texts = ", ".join(database.compared(column) for column in columns)
        theirs = sorted(database.ask(f"SELECT {texts} FROM {database.table_sql(table)}"))
    finally:
        database.close()
    for place, column in enumerate(columns):
        pairs = {(a[place], b[place]) for a, b in zip(ours, theirs, strict=True)}
        assert {pair for pair in pairs if pair[0] != pair[1]} == set(), column


def digits_behind(type_: str) -> int | None:
    """The scale of a decimal's type."""
    found = re.search(r"\(\d+,(-?\d+)\)", type_)
    return max(int(found[1]), 0) if found else None


_CASCADE = {"postgresql": " CASCADE"}


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("kind", "format_"), WAYS, ids=map("-".join, WAYS))
def test_a_load_has_the_value_of_the_stream_that_is_read_beside_it(
    kind: str,
    format_: str,
    fresh_server: Server,
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """The same with a reader that runs now; its messages are those that were recorded."""
    folder = tmp_path_factory.mktemp("reader")
    fill(fresh_server, format_, rows=False)
    records = read_now(fresh_server, format_, folder)
    streamed = decoded(kind, format_, records)
    read = loaded(spark, fresh_server, format_, folder)
    assert_same(streamed, read, whole=format_ != "maxwell-json")
    kept = decoded(kind, format_, load(RECORDED / f"{kind}-{format_}.gz"))
    assert repr(streamed.to_pylist()) == repr(kept.to_pylist())  # a NaN equals none


def test_records_are_kept_as_they_are(tmp_path: Path) -> None:
    """No key, no value, and empty ones differ."""
    from tests.databases.base.streams import save

    records = [Record(None, b"x"), Record(b"", None), Record(b"k\n", b"")]
    save(tmp_path / "r.gz", records)
    assert load(tmp_path / "r.gz") == records
