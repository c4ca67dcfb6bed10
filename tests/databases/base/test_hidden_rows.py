"""PostgreSQL's rows that a policy hides, and those that inheritance adds: a read has all of the
table's own rows and no others, or is refused by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from changes.model.model import TableName
from changes.sql.forms import Form
from changes.sql.spark.checksums import TextColumn
from databases.base.checksums import Checksums
from databases.base.database import Database
from databases.base.errors import DatabaseRefused
from databases.base.port import SourceTable
from sparkwriter.session.chunks import read_chunks
from sparkwriter.session.requests import ChunkColumn, ChunkQuery, ChunkUnreadable
from tests.databases.base.servers import Server

pytestmark = pytest.mark.integration

HIDING = "ALTER TABLE hidden.t ENABLE ROW LEVEL SECURITY"
WAY_OUT = 'hides rows from jobs.*ALTER ROLE "jobs" BYPASSRLS'

READS: dict[str, Callable[[Database, SourceTable], object]] = {
    "rows": lambda one, table: list(one.stream(one.query(table, table.columns), 9)),
    "checksums": lambda one, table: one.ask(sums(one, table)),
    "ranges": lambda one, table: list(one.ranges(table, 1)),
    "some rows": lambda one, table: one.rows(table, table.columns, [("1",), ("2",)]),
}


def sums(database: Database, table: SourceTable) -> str:
    """The SELECT of all rows' checksum."""
    texts = [TextColumn(database.compared(column), free=True) for column in table.columns]
    return Checksums(database, table, texts, texts[:1]).sums("1 = 1", 0)


@pytest.fixture
def server(servers: dict[str, Server]) -> Iterator[Server]:
    """A table of two rows."""
    found = servers["postgresql"]
    found.run([
        "DROP SCHEMA IF EXISTS hidden CASCADE", "CREATE SCHEMA hidden",
        "CREATE TABLE hidden.t (id int PRIMARY KEY)", "INSERT INTO hidden.t VALUES (1), (2)",
    ])  # fmt: skip
    yield found
    found.run(["ALTER ROLE jobs NOBYPASSRLS"])


@pytest.fixture
def database(server: Server) -> Iterator[Database]:
    """The connection of the user for jobs, who may read everything but is under policies."""
    found = server.open()
    yield found
    found.close()


def test_a_table_whose_rows_a_policy_hides_is_refused(server: Server, database: Database) -> None:
    """Before a load makes an empty table of it, or a repair deletes all. The way out leads out."""
    server.run([HIDING])
    with pytest.raises(DatabaseRefused, match=WAY_OUT):
        database.describe(TableName("hidden", "t"))
    found = database.check([TableName("hidden", "t")], lambda: 0)
    assert any("hides rows from jobs" in line for line in found.problems)
    server.run(["ALTER ROLE jobs BYPASSRLS"])
    table = database.describe(TableName("hidden", "t"))
    assert len(database.rows(table, table.columns, [("1",), ("2",)])) == 2


@pytest.mark.parametrize("read", READS)
def test_a_policy_that_comes_later_ends_the_read(
    read: str, server: Server, database: Database
) -> None:
    """It gives an error, never fewer rows."""
    table = database.describe(TableName("hidden", "t"))
    server.run([HIDING])
    with pytest.raises(DatabaseRefused, match="row-level security"):
        READS[read](database, table)


@pytest.mark.usefixtures("drivers")
def test_sparks_read_ends_too(
    server: Server, database: Database, spark: SparkSession, tmp_path: Path
) -> None:
    """Its sessions have the same settings."""
    table = database.describe(TableName("hidden", "t"))
    part = ChunkQuery(database.query(table, table.columns), tmp_path / "a.parquet")
    columns = [ChunkColumn("id", "int", Form.WHOLE)]
    server.run(["CREATE TABLE hidden.child () INHERITS (hidden.t)",
                "INSERT INTO hidden.child VALUES (1), (9)"])  # fmt: skip
    assert read_chunks(spark, database.jdbc(table), [part], columns) == [2]
    server.run([HIDING])
    with pytest.raises(ChunkUnreadable, match="row-level security"):
        read_chunks(spark, database.jdbc(table), [part], columns)


@pytest.mark.parametrize("read", READS)
def test_rows_of_tables_that_inherit_are_not_the_tables(
    read: str, server: Server, database: Database
) -> None:
    """They have keys that the table has, too, and changes under another name."""
    table = database.describe(TableName("hidden", "t"))
    before = READS[read](database, table)
    server.run(["CREATE TABLE hidden.child (more int) INHERITS (hidden.t)",
                "INSERT INTO hidden.child VALUES (1), (9)"])  # fmt: skip
    assert READS[read](database, database.describe(TableName("hidden", "t"))) == before


def test_a_partitioned_table_has_the_rows_of_its_partitions(
    server: Server, database: Database
) -> None:
    """There ONLY would leave nothing."""
    server.run(["CREATE TABLE hidden.p (id int PRIMARY KEY) PARTITION BY RANGE (id)",
                "CREATE TABLE hidden.p1 PARTITION OF hidden.p FOR VALUES FROM (0) TO (9)",
                "INSERT INTO hidden.p VALUES (1), (2)"])  # fmt: skip
    table = database.describe(TableName("hidden", "p"))
    assert len(database.rows(table, table.columns, [("1",), ("2",)])) == 2
    assert table.rows > 0


def test_a_table_that_the_log_leaves_out_is_refused(server: Server, database: Database) -> None:
    """What is read of it would stay for ever."""
    server.run(["ALTER TABLE hidden.t SET UNLOGGED"])
    with pytest.raises(DatabaseRefused, match=r"it is UNLOGGED.*SET LOGGED"):
        database.describe(TableName("hidden", "t"))


LEFT_OUT = {
    "unlogged": "CREATE UNLOGGED TABLE hidden.p1 PARTITION OF hidden.p FOR VALUES FROM (0) TO (9)",
    "foreign": "CREATE FOREIGN TABLE hidden.p1 PARTITION OF hidden.p FOR VALUES FROM (0) TO (9)"
    " SERVER hidden_files OPTIONS (filename '/dev/null', format 'csv')",
}


@pytest.mark.parametrize("kind", LEFT_OUT)
def test_a_partition_that_the_log_leaves_out_is_refused(
    kind: str, server: Server, database: Database
) -> None:
    """At any depth: the table's own rows are its partitions'."""
    server.run([
        "CREATE EXTENSION IF NOT EXISTS file_fdw",
        "DROP SERVER IF EXISTS hidden_files CASCADE",
        "CREATE SERVER hidden_files FOREIGN DATA WRAPPER file_fdw",
        "CREATE TABLE hidden.top (id int) PARTITION BY RANGE (id)",
        "CREATE TABLE hidden.p PARTITION OF hidden.top FOR VALUES FROM (0) TO (99)"
        " PARTITION BY RANGE (id)",
        LEFT_OUT[kind],
    ])  # fmt: skip
    with pytest.raises(DatabaseRefused, match=r"partition hidden\.p1 .*the stream has no change"):
        database.describe(TableName("hidden", "top"))
    server.run(["ALTER TABLE hidden.p DETACH PARTITION hidden.p1"])
    assert database.describe(TableName("hidden", "top")).columns


def test_a_truncate_of_a_partitioned_table_changes_its_definition(
    server: Server, database: Database
) -> None:
    """Debezium leaves TRUNCATE out: what was read before it is not what is read after it. Another
    partition is no such thing, or a table that gets one each hour could not be loaded."""
    server.run(["CREATE TABLE hidden.p (id int PRIMARY KEY) PARTITION BY RANGE (id)",
                "CREATE TABLE hidden.p1 PARTITION OF hidden.p FOR VALUES FROM (0) TO (9)",
                "INSERT INTO hidden.p VALUES (1)"])  # fmt: skip
    before = database.describe(TableName("hidden", "p")).definition
    server.run(["CREATE TABLE hidden.p2 PARTITION OF hidden.p FOR VALUES FROM (9) TO (19)"])
    assert database.describe(TableName("hidden", "p")).definition == before
    server.run(["TRUNCATE hidden.p"])
    assert database.describe(TableName("hidden", "p")).definition != before
