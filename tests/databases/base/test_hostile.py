"""What a server, a role or a database sets for its sessions changes nothing of what is read, by
the daemon's own connection and by Spark's, and of what a sink's connection does."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from changes.model.model import OP, Column, TableName, TableSchema, TargetName
from changes.sql.spark.checksums import TextColumn
from databases.base.checksums import Checksums
from databases.base.errors import DatabaseError, DatabaseRefused
from databases.base.port import ALL_ROWS
from databases.base.session_settings import Server as Kind
from databases.base.session_settings import differing, reading, show_mysql, writing
from databases.base.url import parse_url
from databases.streamed import as_streamed
from sparkwriter.kit.marks_table.writer import LedgeredWriter
from sparkwriter.kit.store import Absent
from sparkwriter.session.chunks import read_chunks
from sparkwriter.session.requests import ChunkColumn, ChunkQuery
from sparkwriter.sql.connect import connect
from sparkwriter.sql.store import JdbcStore
from sparkwriter.sql.stored import read_table
from tests.databases.base.hostile import ROLE, SUPER, hostile
from tests.databases.base.servers import PASSWORD, Server
from tests.sparkwriter.conftest import LANE, Staging

pytestmark = pytest.mark.integration

KINDS: tuple[Kind, ...] = ("mariadb", "mysql", "postgresql")
TABLE = TableName("settings", "t")
MYSQL = "id INT PRIMARY KEY, c CHAR(9), d DATE, f DOUBLE, b VARBINARY(9), s TIMESTAMP(6) NULL"
COLUMNS = {
    "mariadb": MYSQL,
    "mysql": MYSQL,
    "postgresql": "id int PRIMARY KEY, c text, d date, f float8, b bytea, s timestamptz",
}
VALUES = "'ü\\\\', '2024-05-06', 0.1, {}, '2024-05-06 07:08:09.123456'"
EVIL = [
    "DROP SCHEMA IF EXISTS evil CASCADE", "CREATE SCHEMA evil",
    "GRANT USAGE ON SCHEMA evil TO jobs",
    "CREATE FUNCTION evil.to_char(date, text) RETURNS text LANGUAGE sql AS $$SELECT '1999-01-01'$$",
    "CREATE FUNCTION evil.encode(bytea, text) RETURNS text LANGUAGE sql AS $$SELECT 'ff'$$",
]  # fmt: skip


@pytest.fixture(params=KINDS)
def server(request: pytest.FixtureRequest, servers: dict[str, Server]) -> Server:
    """A server with a table of 20 rows."""
    found = servers[request.param]
    cascade = " CASCADE" if found.kind == "postgresql" else ""
    zone = "SET TIME ZONE 'UTC'" if found.kind == "postgresql" else "SET time_zone = '+00:00'"
    raw = r"'\x01ff'" if found.kind == "postgresql" else "X'01FF'"
    text = VALUES.format(raw)
    if found.kind == "postgresql":
        text = text.replace("\\\\", "\\")
        found.run(EVIL)
    rows = ", ".join(f"({n}, {text})" for n in range(20))
    found.run([
        f"DROP SCHEMA IF EXISTS settings{cascade}", "CREATE SCHEMA settings", zone,
        f"CREATE TABLE settings.t ({COLUMNS[found.kind]})",
        f"INSERT INTO settings.t VALUES {rows}",
    ])  # fmt: skip
    return found


def read(server: Server, spark: SparkSession, out: Path) -> list[object]:
    """All that a load, a verification and a repair ask for, by both stacks."""
    database = server.open()
    try:
        table = database.describe(TABLE)
        rows = [row for some in database.stream(database.query(table, table.columns), 7)
                for row in some]  # fmt: skip
        texts = [TextColumn(database.compared(column), free=True) for column in table.columns]
        sums = database.ask(Checksums(database, table, texts, texts[:1]).sums("1 = 1", 0))
        ranges = list(database.ranges(table, 6))
        keys = database.rows(table, table.columns, [(str(n),) for n in range(20)])
        streamed = as_streamed(table, server.section().address.kind, "debezium-json").columns
        chunk = [ChunkColumn(c.column.name, c.type, c.column.form) for c in streamed]  # type: ignore[arg-type]
        query = database.query(table, [c.column for c in streamed], ALL_ROWS)
        (count,) = read_chunks(spark, database.jdbc(table), [ChunkQuery(query, out)], chunk)
        return [sorted(map(str, rows)), sums, ranges, keys, count,
                sorted(map(str, pq.read_table(out).to_pylist())), table]  # fmt: skip
    finally:
        database.close()


@pytest.mark.usefixtures("drivers")
def test_nothing_that_is_read_changes(server: Server, spark: SparkSession, tmp_path: Path) -> None:
    """Rows, checksums, ranges, rows by their keys, Spark's chunks."""
    before = read(server, spark, tmp_path / "before.parquet")
    with hostile(server, "jobs"):
        assert read(server, spark, tmp_path / "hostile.parquet") == before
    assert before[4] == 20


def test_each_pinned_setting_is_there(server: Server) -> None:
    """In sessions that read, and in those that write."""
    kind: Kind = server.kind  # type: ignore[assignment]
    word = "mysql" if kind == "mysql" else kind
    end = "postgres" if kind == "postgresql" else ""
    url = parse_url(f"jdbc:{word}://127.0.0.1:{server.port}/{end}")
    with hostile(server, "jobs"):
        database, session = server.open(), connect(url, "jobs", PASSWORD)
        try:
            if kind == "postgresql":
                show = "SELECT name, current_setting(name) FROM pg_settings"
                assert ROLE.keys() - {"lock_timeout"} <= {*reading(kind), *writing(kind)}
            else:
                show = show_mysql({**reading(kind), **writing(kind)})
            read_by = {str(k): str(v) for k, v in database.ask(show)}
            written_by = {str(k): str(v) for k, v in session.rows(show)}
            assert differing(reading(kind), read_by) == {}
            assert differing(writing(kind), written_by) == {}
        finally:
            database.close()
            session.close()


@pytest.mark.parametrize("server", ["mariadb", "mysql"], indirect=True)
def test_rows_that_are_not_committed_are_not_read(server: Server) -> None:
    """READ UNCOMMITTED would load them, and repair by them. PostgreSQL never shows any."""
    with hostile(server, "jobs"):
        writing_ = connect(
            parse_url(f"jdbc:{server.kind}://127.0.0.1:{server.port}/"), "live", "live"
        )
        database = server.open()
        try:
            writing_.begin()
            writing_.run("UPDATE settings.t SET c = 'dirty'")
            table = database.describe(TABLE)
            assert "dirty" not in str(database.rows(table, table.columns, [("1",)]))
        finally:
            writing_.close()
            database.close()


def test_what_a_sink_writes_is_what_it_was_given(server: Server, tmp_path: Path) -> None:
    """The rows and their marks, in tables with transactions; a row that goes, goes."""
    if server.kind == "postgresql":
        server.run(["DROP SCHEMA IF EXISTS copies CASCADE", "CREATE SCHEMA copies",
                    "GRANT ALL ON SCHEMA copies TO jobs"])  # fmt: skip
        url = parse_url(f"jdbc:postgresql://127.0.0.1:{server.port}/postgres")
    else:
        server.run(["DROP SCHEMA IF EXISTS copies"])
        url = parse_url(f"jdbc:{server.kind}://127.0.0.1:{server.port}/")
    user = ("jobs", None) if server.kind == "postgresql" else ("live", "live")
    at = datetime(2024, 2, 29, 1, 2, 3, 456789, tzinfo=UTC)
    rows = pa.table({
        OP: ["U"] * 9, "id": pa.array(range(9), pa.int32()), "t": ["ü\\ '\" "] * 9,
        "f": [0.1] * 9, "b": pa.array([b"\x01\xff\x00"] * 9, pa.binary()),
        "at": pa.array([at] * 9, pa.timestamp("us", tz="UTC")),
    })  # fmt: skip
    columns = tuple(Column(f.name, f.type) for f in rows.schema if f.name != OP)
    target = TargetName("out", "copies", "t")
    staging = Staging(tmp_path, target, TableSchema(columns, ("id",)))
    with hostile(server, "jobs"):
        store = JdbcStore(lambda: connect(url, *user), "copies")
        writer = LedgeredWriter(store)
        writer.write(staging.batch(rows, 1))
        gone = rows.slice(0, 1).set_column(0, OP, pa.array(["D"]))
        assert writer.write(staging.batch(gone, 2, after=1)).hwms == {LANE: 2}
        seen = store.look(target)
        assert not isinstance(seen, Absent)
        found = read_table(store.session, seen).sort_by("id")
        store.close()
    assert found.to_pylist() == rows.slice(1).drop_columns([OP]).to_pylist()
    if server.kind != "postgresql":
        database = server.open()
        engines = "SELECT DISTINCT ENGINE FROM information_schema.TABLES"
        assert database.ask(f"{engines} WHERE TABLE_SCHEMA = 'copies'") == [("InnoDB",)]
        database.close()


@pytest.mark.parametrize("name", SUPER)
def test_what_only_a_superuser_may_take_away_is_refused_by_name(
    name: str, servers: dict[str, Server]
) -> None:
    """A session that reads damaged pages as empty ones would take rows for deleted."""
    server = servers["postgresql"]
    server.run([f"ALTER ROLE jobs SET {name} = '{SUPER[name]}'"])
    try:
        if name in reading("postgresql"):
            with pytest.raises(DatabaseRefused, match=f"can't be made: .*{name}"):
                server.open().ask("SELECT 1")
        with pytest.raises(DatabaseError, match=f"can't be made: .*{name}"):
            connect(parse_url(f"jdbc:postgresql://127.0.0.1:{server.port}/postgres"), "jobs", None)
    finally:
        server.run(["ALTER ROLE jobs RESET ALL"])
