"""The pointers of a JDBC catalog, of either of its schemas, in each database."""

from __future__ import annotations

import itertools
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from actors.contract.ports import OneFailed
from actors.contract.writes import StagedBatch
from changes.model.errors import LostRace, SinkAway, SinkUnavailable
from changes.model.model import TargetName
from sparkwriter.iceberg import together
from sparkwriter.iceberg.pointers import move
from sparkwriter.iceberg.probe_together import probe_together
from sparkwriter.iceberg.sink import IcebergWriter
from tests.sparkwriter.databases import Server
from tests.sparkwriter.sql.test_together import Several

pytestmark = pytest.mark.integration
A, B = [(1, "a", 1)], [(1, "b", 2)]
LOCKS_S = 1.0
_numbers = itertools.count()


@pytest.fixture
def several(tmp_path: Path, target: TargetName, orders: Any) -> Several:
    return Several(tmp_path, target, orders)


class Served:
    """A catalog in a database of its own, and a writer of its tables."""

    def __init__(self, spark: Any, place: Server, several: Several, folder: Path) -> None:
        self.place, self._several, self._spark = place, several, spark
        self.name = f"served{next(_numbers)}"
        kind, more = "postgresql", ""
        if not place.is_postgres:
            # Else Iceberg takes another database's tables for its own, and makes none.
            kind, more = "mariadb", "?nullDatabaseMeansCurrent=true"
        self.ask(f"CREATE DATABASE {self.name}", "")
        self.properties = {
            "type": "jdbc",
            "uri": f"jdbc:{kind}://127.0.0.1:{place.program.port}/{self.name}{more}",
            "jdbc.user": place.user,
            "jdbc.schema-version": "V1",
            "cache-enabled": "false",
            "warehouse": str(folder / "lake"),
        }
        self.names = [name._replace(sink=self.name) for name in several.names]
        self.writer = self.written_as()

    def written_as(self, **properties: str) -> IcebergWriter:
        """A writer whose catalog has other properties."""
        key = f"spark.sql.catalog.{self.name}"
        settings = {key: "org.apache.iceberg.spark.SparkCatalog"}
        for name, value in (self.properties | properties).items():
            settings[f"{key}.{name.replace('_', '.')}"] = value
        return IcebergWriter(self._spark, settings=settings)

    def ask(self, statement: str, database: str | None = None) -> tuple[tuple[str, ...], ...]:
        """Of the server, on a connection of its own."""
        into = self.name if database is None else database
        if self.place.is_postgres:
            answer = self.place.program.ask(statement, into or "postgres")  # type: ignore[call-arg]
        else:
            answer = self.place.program.ask(f"USE {into}; {statement}" if into else statement)
        assert not answer.error, answer.error
        return answer.rows

    def batches(self, value: str, through: int) -> list[StagedBatch]:
        made = self._several.batches(("U", 1, value, through), through=through)
        return [replace(b, target=b.target._replace(sink=self.name)) for b in made]

    def sql(self, statement: str) -> list[tuple[Any, ...]]:
        """Of Spark, as another writer of the lake."""
        return [tuple(row) for row in self.written_as()._lake._spark.sql(statement).collect()]

    def shown(self) -> list[list[tuple[Any, ...]]]:
        return [self.sql(f"SELECT * FROM {spelt(name)}") for name in self.names]


@pytest.fixture(params=["postgres", "mariadb", pytest.param("mysql", marks=pytest.mark.soak)])
def served(request: Any, spark: Any, several: Several, tmp_path: Path) -> Served:
    """Each table shows A."""
    place = request.getfixturevalue(f"{request.param}_server")
    made = Served(spark, place, several, tmp_path)
    made.writer.write_together(made.batches("a", 1), LOCKS_S)
    return made


@pytest.fixture
def before_second(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """Have something done, once, between the first pointer's move and the second one's."""

    def patch(act: Callable[[], object]) -> None:
        acts = [act, lambda: None]

        def patched(connection: Any, pointer: Any, wait_s: float) -> bool:
            if acts:
                acts.pop()()
            return move(connection, pointer, wait_s)

        monkeypatch.setattr(together, "move", patched)

    return patch


def spelt(name: TargetName) -> str:
    return f"{name.sink}.{name.namespace}.{name.table}"


def files(folder: Path) -> set[Path]:
    """What lies in the lake, without the checksums beside it."""
    return {p for p in (folder / "lake").rglob("*") if p.is_file() and p.suffix != ".crc"}


@contextmanager
def held(served: Served, name: TargetName) -> Iterator[None]:
    """Another session has locked the table's row."""
    server: Any = served.place.program
    if served.place.is_postgres:
        to = ["-h", "127.0.0.1", "-p", str(server.port), "-U", "postgres", "-d", served.name]
        command = [server._client, "-X", "-q", *to]
    else:
        command = ["mariadb", "--no-defaults", "--user=root", f"--socket={server._socket}"]
        command += ["--unbuffered", "--skip-column-names", served.name]
    row = f"('{name.sink}', '{name.namespace}', '{name.table}')"
    where = f"(catalog_name, table_namespace, table_name) = {row}"
    lock = f"SELECT 'held' FROM iceberg_tables WHERE {where} FOR UPDATE"
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as session:
        assert session.stdin
        assert session.stdout
        session.stdin.write(f"BEGIN; {lock};\n".encode())
        session.stdin.flush()
        assert any(b"held" in line for line in session.stdout)
        yield
        session.stdin.close()


@contextmanager
def read_only(served: Served) -> Iterator[None]:
    """As a standby is, or a server at a failover."""
    if served.place.is_postgres:
        setting = f"ALTER DATABASE {served.name} SET default_transaction_read_only"
    else:
        setting = "SET GLOBAL read_only"
    served.ask(f"{setting} = on", "")
    try:
        yield
    finally:
        served.ask(f"{setting} = off", "")


def failure(served: Served, batches: list[StagedBatch], writer: Any = None) -> OneFailed:
    with pytest.raises(OneFailed) as failed:
        (writer or served.writer).write_together(batches, LOCKS_S)
    return failed.value


def test_a_servers_catalog(served) -> None:
    """All show it, and ``check-config`` says that they will."""
    assert served.shown() == [A] * 3
    assert [*probe_together(served.writer._lake._spark, served.name, served.properties)] == []
    served.writer.write_together(served.batches("b", 2), LOCKS_S)
    assert served.shown() == [B] * 3


def test_a_locked_row_is_its_tables_fault(served, tmp_path: Path) -> None:
    """It is named, the others can go without it, and nothing is left of the attempt."""
    batches, before = served.batches("b", 2), files(tmp_path)
    with held(served, locked := served.names[1]):
        failed = failure(served, batches)
        assert (failed.target, type(failed.__cause__)) == (locked, SinkUnavailable)
        assert str(failed.__cause__).startswith(f"{locked}: another session holds its row")
        assert (served.shown(), files(tmp_path)) == ([A] * 3, before)
        served.writer.write_together([batches[0], batches[2]], LOCKS_S)
        assert served.shown() == [B, A, B]
    served.writer.write_together(batches, LOCKS_S)
    assert served.shown() == [B] * 3


def test_who_is_overtaken_amid_it(served, before_second, tmp_path: Path) -> None:
    """By a property: the metadata is made again. By a commit, a renaming: nothing moves."""
    middle = served.names[1]
    before_second(lambda: served.sql(f"ALTER TABLE {spelt(middle)} SET TBLPROPERTIES ('a'='b')"))
    batches = served.batches("b", 2)
    served.writer.write_together(batches, LOCKS_S)
    assert served.shown() == [B] * 3
    before_second(lambda: served.sql(f"DELETE FROM {spelt(middle)}"))
    failed = failure(served, batches := served.batches("c", 3))
    assert (failed.target, type(failed.__cause__)) == (middle, LostRace)
    assert served.shown() == [B, [], B]
    before_second(lambda: served.sql(f"ALTER TABLE {spelt(middle)} RENAME TO sink.elsewhere"))
    failed = failure(served, batches)
    assert (failed.target, type(failed.__cause__)) == (middle, SinkUnavailable)
    assert [served.sql(f"SELECT * FROM {spelt(name)}") for name in served.names[::2]] == [B] * 2
    assert served.sql(f"SELECT * FROM {served.name}.sink.elsewhere") == []


def test_a_server_that_puts_transactions_in_order(served, before_second) -> None:
    """It refuses a change of what another has changed meanwhile: the same as one overtaken."""
    if not served.place.is_postgres:
        pytest.skip("MySQL and MariaDB lock what is read instead")
    setting = "SET default_transaction_isolation = 'serializable'"
    served.ask(f"ALTER DATABASE {served.name} {setting}")
    served.writer = served.written_as()
    middle = spelt(served.names[1])
    before_second(lambda: served.sql(f"ALTER TABLE {middle} SET TBLPROPERTIES ('a'='b')"))
    served.writer.write_together(served.batches("b", 2), LOCKS_S)
    assert served.shown() == [B] * 3
    assert ("a", "b") in served.sql(f"SHOW TBLPROPERTIES {middle}")


@pytest.mark.parametrize("lacks", ["the right", "a server that writes"])
def test_a_database_that_takes_no_change_is_nobodys_fault(served, lacks, tmp_path: Path) -> None:
    """None of the tables could be written, so all wait, and nothing is left of the attempt."""
    batches, before = served.batches("b", 2), files(tmp_path)
    user = f"user_{served.name}"
    if not served.place.is_postgres:
        user = f"{user}@'%'"
    served.ask(f"CREATE USER {user}")
    rights = "SELECT, INSERT" if lacks == "the right" else "SELECT, INSERT, UPDATE"
    for table in ("iceberg_tables", "iceberg_namespace_properties"):
        served.ask(f"GRANT {rights} ON {table} TO {user}")
    other = served.written_as(jdbc_user=f"user_{served.name}")
    with read_only(served) if lacks != "the right" else nullcontext():
        failed = failure(served, batches, other)
    assert (failed.target, type(failed.__cause__)) == (None, SinkAway)
    assert "the catalog takes no commit: " in str(failed.__cause__)
    assert (served.shown(), files(tmp_path)) == ([A] * 3, before)


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
