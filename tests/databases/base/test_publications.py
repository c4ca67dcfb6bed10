"""PostgreSQL's publications: a read has the rows and columns that the stream has, or is refused."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from changes.model.model import TableName
from changes.sql.spark.checksums import TextColumn
from databases.base.checksums import Checksums
from databases.base.errors import DatabaseRefused
from databases.base.port import SourceTable
from databases.base.section import DatabaseSection, TargetSection
from databases.base.selects import text_of
from tests.databases.base.servers import Server, opened

pytestmark = pytest.mark.integration

T = TableName("pubs", "t")
WHOLE = "CREATE PUBLICATION whole FOR TABLE pubs.t"
EU = "CREATE PUBLICATION eu FOR TABLE pubs.t WHERE (region = 'eu')"
FEW = "CREATE PUBLICATION few FOR TABLE pubs.t (id, region)"


@pytest.fixture
def server(servers: dict[str, Server]) -> Iterator[Server]:
    """A table of four rows, two of a region; and a partitioned one."""
    found = servers["postgresql"]
    found.run([
        "DROP SCHEMA IF EXISTS pubs CASCADE", "CREATE SCHEMA pubs",
        "CREATE TABLE pubs.t (id int PRIMARY KEY, region text, pin text)",
        "ALTER TABLE pubs.t REPLICA IDENTITY FULL",
        "INSERT INTO pubs.t VALUES (1, 'eu', 'a'), (2, 'us', 'b'), (3, 'eu', 'c'), (4, NULL, 'd')",
        "CREATE TABLE pubs.p (id int PRIMARY KEY) PARTITION BY RANGE (id)",
        "CREATE TABLE pubs.p1 PARTITION OF pubs.p FOR VALUES FROM (0) TO (9)",
    ])  # fmt: skip
    yield found
    found.run([f"DROP PUBLICATION IF EXISTS {name}" for name in ("whole", "eu", "few", "mine")])


def described(server: Server, table: TableName = T, **more: object) -> SourceTable:
    """The table as a job sees it."""
    database = server.open(**more)
    try:
        return database.describe(table)
    finally:
        database.close()


def test_rows_that_a_filter_leaves_out_are_not_read(server: Server) -> None:
    """By no statement: whole reads, ranges, keys, checksums."""
    server.run([EU])
    database = server.open()
    try:
        table = database.describe(T)
        id_ = table.column("id")
        rows = database.ask(database.query(table, [id_]))
        assert sorted(text_of(row[0]) or "" for row in rows) == ["1", "3"]
        assert len(list(database.ranges(table, 1))) == 3
        assert set(database.rows(table, [id_], [("1",), ("2",), ("4",)])) == {("1",)}
        texts = [TextColumn(database.compared(id_), free=False)]
        ((_, count, _),) = database.ask(Checksums(database, table, texts, texts).sums("1 = 1", 0))
        assert count == 2
    finally:
        database.close()


def test_columns_that_a_list_leaves_out_are_not_read(server: Server) -> None:
    """They would come in, and never change."""
    server.run([FEW])
    assert [column.name for column in described(server).columns] == ["id", "region"]


def test_another_list_or_filter_is_another_definition(server: Server) -> None:
    """A load that has begun begins again."""
    server.run([WHOLE])
    before = described(server).definition
    server.run(["ALTER PUBLICATION whole SET TABLE pubs.t WHERE (id > 1)"])
    assert described(server).definition != before


def test_publications_that_differ_are_told_apart_by_the_configuration(server: Server) -> None:
    """Which one the stream's reader reads is not to be seen."""
    server.run([WHOLE, EU])
    with pytest.raises(DatabaseRefused, match="publications eu, whole have different rows"):
        described(server)
    assert described(server, publication="whole").rows_where is None
    assert "region" in str(described(server, publication="eu").rows_where)
    with pytest.raises(DatabaseRefused, match="publication other does not have it"):
        described(server, publication="other")


REFUSED = {
    "FOR TABLE pubs.t WITH (publish = 'insert')": (T, "has no update and no deletes of it"),
    "FOR TABLE pubs.p": (TableName("pubs", "p"), "publish_via_partition_root = true"),
}


@pytest.mark.parametrize("made", REFUSED)
def test_what_a_publication_never_tells_is_refused(made: str, server: Server) -> None:
    """With the statement that has it told."""
    table, why = REFUSED[made]
    server.run([f"CREATE PUBLICATION mine {made}"])
    with pytest.raises(DatabaseRefused, match=why):
        described(server, table)
    server.run([
        "ALTER PUBLICATION mine SET (publish = 'insert, update, delete, truncate',"
        " publish_via_partition_root = true)"
    ])  # fmt: skip
    assert described(server, table).keys == ("id",)


def test_a_table_that_no_publication_has_is_refused_where_all_readers_read_by_them(
    server: Server,
) -> None:
    """Its rows would stay as they were loaded."""
    assert described(server)
    server.run(["SELECT pg_create_logical_replication_slot('pubs', 'pgoutput')"])
    try:
        with pytest.raises(DatabaseRefused, match=r"no publication has it.*ADD TABLE"):
            described(server)
    finally:
        server.run(["SELECT pg_drop_replication_slot('pubs')"])


def test_a_targets_own_publications_are_nobodys(server: Server) -> None:
    """They are for readers behind the target."""
    server.run([EU, WHOLE])
    section: DatabaseSection = TargetSection(**server.section().model_dump())
    database = opened(section)
    try:
        assert database.describe(T).rows_where is None
    finally:
        database.close()


def test_publications_are_postgresqls() -> None:
    """Elsewhere the key is a mistake."""
    with pytest.raises(ValueError, match="PostgreSQL alone has publications"):
        DatabaseSection(url="jdbc:mysql://h", user="u", publication="p")
