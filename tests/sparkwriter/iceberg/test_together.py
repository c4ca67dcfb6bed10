"""Several tables of a JDBC catalog in one step: all of them move, or none does."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JError

from actors.contract.ports import OneFailed
from changes.model.errors import LostRace, SinkAway, SinkUnavailable
from changes.model.model import Mode, TargetName
from changes.sql.spark import write_strategy as ways
from offsets.cuts import KeepCuts, tag_of
from offsets.position import NO_OFFSET
from sparkwriter.iceberg import together
from sparkwriter.iceberg.catalog import LakeCatalog
from sparkwriter.iceberg.java import LakeTable
from sparkwriter.iceberg.pointers import transaction
from sparkwriter.iceberg.queries import LakeQueries
from sparkwriter.iceberg.section import Write
from sparkwriter.iceberg.sink import IcebergWriter
from tests.sparkwriter.sql.test_together import Several

pytestmark = pytest.mark.integration
KEEP = KeepCuts(recent_s=60, hourly_days=1)
A, B, C = [(1, "a", 1)], [(1, "b", 2)], [(1, "c", 3)]


@pytest.fixture
def several(lake: Any, tmp_path: Path, target: TargetName, orders: Any) -> Several:
    if lake.catalog.get("type") != "jdbc":
        pytest.skip("moves tables of a JDBC catalog")
    return Several(tmp_path, target, orders)


@pytest.fixture
def begun(writer: IcebergWriter, several: Several) -> Several:
    """Each table shows A."""
    writer.write_together(several.batches(("U", 1, "a", 1), through=1))
    return several


@pytest.fixture
def shown(rows: Any, several: Several) -> Callable[[], list[Any]]:
    """What each table shows."""
    return lambda: [rows(name) for name in several.names]


@pytest.fixture
def load(spark: Any) -> Callable[[TargetName], LakeTable]:
    """The table as another process would load it."""

    def loaded(name: TargetName) -> LakeTable:
        table = LakeCatalog(spark).load(name)
        assert table is not None
        return table

    return loaded


@pytest.fixture
def amid(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Any], object]], None]:
    """Have something done, once, between the writes and the common commit. It gets the
    connection, and may give another one."""

    def patch(act: Callable[[Any], object]) -> None:
        acts = [act]

        @contextmanager
        def patched(table: LakeTable) -> Iterator[Any]:
            with transaction(table) as connection:
                yield (acts.pop()(connection) if acts else None) or connection

        monkeypatch.setattr(together, "transaction", patched)

    return patch


class Losing:
    """A connection whose commit gets no reply."""

    def __init__(self, real: Any, lands: bool) -> None:
        self._real, self._lands = real, lands

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def commit(self) -> None:
        """Java's."""
        if self._lands:
            self._real.commit()
        raise Py4JError("the reply was lost")


def files(warehouse: Path, several: Several) -> set[Path]:
    """What lies below the tables, without the checksums beside it."""
    found = (p for n in several.names for p in (warehouse / n.namespace / n.table).rglob("*"))
    return {path for path in found if path.is_file() and path.suffix != ".crc"}


@pytest.mark.parametrize("way", [*Write, "statement"])
def test_all_of_them_show_it_and_each_has_its_marks(
    writer, several, shown, monkeypatch, way
) -> None:
    """Tables are made on the way; a second write finds them; a third is the second one again."""
    if way == "statement":
        monkeypatch.setattr(ways, "SEEK_ROW_S", 1e9)
    for each in several._staging:
        each.write = way if isinstance(way, Write) else Write.MERGE
    made = writer.write_together(several.batches(("U", 1, "a", 1), ("U", 2, "b", 2), through=1))
    assert shown() == [[(1, "a", 1), (2, "b", 2)]] * 3
    assert [state.covered for state in made] == [False] * 3
    batches = several.batches(("U", 1, "z", 9), ("D", 2, None, None), through=2)
    again = writer.write_together(batches[::-1])
    assert shown() == [[(1, "z", 9)]] * 3
    opened = [writer.open(name) for name in several.names[::-1]]
    assert [(s.hwms, s.version) for s in again] == [(s.hwms, s.version) for s in opened]
    assert all(state.covered for state in writer.write_together(batches))
    assert shown() == [[(1, "z", 9)]] * 3


def test_a_changelog_and_marks_alone_come_with_them(writer, begun, shown, orders) -> None:
    """And a table by itself is written as ever beside them."""
    first, second, third = begun._staging
    third.target = log = third.target._replace(table=f"{third.target.table}_log")
    added = third.batch(orders(("U", 1, "c", 3)), 2, after=NO_OFFSET, mode=Mode.APPEND)
    batches = [first.batch(None, 2), second.batch(orders(("U", 1, "b", 2)), 2), added]
    states = writer.write_together(batches)
    assert shown() == [A, B, A]
    assert [s.hwms for s in states] == [writer.open(n).hwms for n in (*begun.names[:2], log)]
    writer.write(first.batch(orders(("U", 1, "c", 3)), 3))
    assert shown() == [C, B, A]


def test_what_changes_beside_main_is_no_obstacle(writer, begun, shown, amid, load) -> None:
    """A tag, a property: the metadata is made again on it, and both are there."""
    tagged, other, _ = begun.names
    version = writer.open(tagged).version

    def change(connection: Any) -> None:
        writer_of_tags = IcebergWriter(writer._lake._spark)
        writer_of_tags.tag(tagged, version, 1_800_000_001, KEEP)
        load(other).table.updateProperties().set("theirs", "yes").commit()

    amid(change)
    writer.write_together(begun.batches(("U", 1, "b", 2), through=2))
    assert shown() == [B] * 3
    assert load(tagged).head(tag_of(1_800_000_001)) == int(version)
    assert load(other).property("theirs") == "yes"


def test_who_is_overtaken_takes_the_others_back(
    writer, begun, shown, amid, spark, warehouse
) -> None:
    """It is named, nothing has moved, and no file is left of it. Then all come again."""
    lost = begun.names[1]
    batches, there = begun.batches(("U", 1, "b", 2), through=2), files(warehouse, begun)

    def overtake(connection: Any) -> None:
        spark.newSession().sql(f"INSERT INTO lake.{lost.namespace}.{lost.table} VALUES (7, 'x', 7)")

    amid(overtake)
    with pytest.raises(OneFailed) as failed:
        writer.write_together(batches)
    assert failed.value.target == lost
    assert isinstance(failed.value.__cause__, LostRace)
    assert shown() == [A, [*A, (7, "x", 7)], A]
    assert {file.parents[1].name for file in files(warehouse, begun) - there} == {lost.table}
    writer.write_together(batches)
    assert shown() == [B, [*B, (7, "x", 7)], B]


@pytest.mark.parametrize("lands", [True, False])
def test_a_lost_reply(writer, begun, shown, amid, warehouse, lands: bool) -> None:
    """The tables tell. What may land yet loses no file, and the marks decide later."""
    amid(lambda connection: Losing(connection, lands))
    batches, before = begun.batches(("U", 1, "b", 2), through=2), files(warehouse, begun)
    if lands:
        states = writer.write_together(batches)
        assert [s.hwms for s in states] == [writer.open(name).hwms for name in begun.names]
    else:
        with pytest.raises(OneFailed) as failed:
            writer.write_together(batches)
        assert (failed.value.target, type(failed.value.__cause__)) == (None, SinkUnavailable)
        assert shown() == [A] * 3
        assert len(files(warehouse, begun) - before) >= 3 * 3
        writer.write_together(batches)
    assert shown() == [B] * 3


def test_a_crash_before_the_commit_has_written_nothing(
    writer, begun, shown, amid, monkeypatch, spark
) -> None:
    """Metadata is there that no pointer names: the next run goes on beside it."""

    class Killed(BaseException):
        """The process ends here."""

    def die(connection: Any) -> None:
        raise Killed

    amid(die)
    batches = begun.batches(("U", 1, "b", 2), through=2)
    with monkeypatch.context() as patch:
        patch.setattr(together.Moves, "give_up", lambda self: None)
        with pytest.raises(Killed):
            writer.write_together(batches)
    assert shown() == [A] * 3
    IcebergWriter(spark).write_together(batches)
    assert shown() == [B] * 3


def test_a_catalog_that_is_locked_takes_nothing(
    writer, begun, shown, amid, lake_conf, warehouse
) -> None:
    """SQLite has one writer at a time: it is nobody's fault, and nothing is left of it."""
    if not lake_conf["uri"].startswith("jdbc:sqlite:"):
        pytest.skip("locks a file of SQLite")
    other = sqlite3.connect(lake_conf["uri"].removeprefix("jdbc:sqlite:"), isolation_level=None)
    batches, before = begun.batches(("U", 1, "b", 2), through=2), files(warehouse, begun)
    amid(lambda connection: other.execute("BEGIN IMMEDIATE") and None)
    with pytest.raises(OneFailed) as failed:
        writer.write_together(batches, 1.0)
    other.close()
    assert failed.value.target is None
    assert "SQLITE_BUSY" in str(failed.value.__cause__)
    assert (shown(), files(warehouse, begun)) == ([A] * 3, before)
    writer.write_together(batches, 1.0)
    assert shown() == [B] * 3


def test_the_log_of_metadata_is_whole(writer, begun, spark, lake_conf, load) -> None:
    """As each commit of Iceberg's leaves it, in the file and in the catalog; DuckDB reads it."""
    for through in range(2, 5):
        writer.write_together(begun.batches(("U", 1, "b", through), through=through))
    for name in begun.names:
        table = load(name)
        logged = [str(entry.file()) for entry in table.metadata.previousFiles().toArray()]
        now = str(table.metadata.metadataFileLocation())
        numbers = [int(Path(file).name.split("-")[0]) for file in (*logged, now)]
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
        if lake_conf["uri"].startswith("jdbc:sqlite:"):
            assert pointers(lake_conf["uri"], name) == (now, logged[-1])
            queries = LakeQueries("lake", lake_conf)
            with queries.answer(f"SELECT n FROM {queries.spell(name)}", [name], None) as answer:
                assert [*answer.rows] == [(4,)]
        entries = f"SELECT file FROM lake.{name.namespace}.{name.table}.metadata_log_entries"
        assert [row[0] for row in spark.sql(entries).collect()] == [*logged, now]


def pointers(uri: str, name: TargetName) -> tuple[str, str]:
    """A table's metadata and the one before, as a catalog of SQLite has them."""
    asked = (
        "SELECT metadata_location, previous_metadata_location FROM iceberg_tables"
        " WHERE table_namespace = ? AND table_name = ?"
    )
    with sqlite3.connect(uri.removeprefix("jdbc:sqlite:")) as catalog:
        found: tuple[str, str] = catalog.execute(asked, (name.namespace, name.table)).fetchone()
    return found


def test_no_connection_is_nobodys_fault(writer, begun, shown, monkeypatch) -> None:
    """None of the targets could be written: so it says."""

    @contextmanager
    def refused(table: LakeTable) -> Iterator[Any]:
        raise SinkAway("no connection to the catalog: refused")
        yield

    batches = begun.batches(("U", 1, "b", 2), through=2)
    with monkeypatch.context() as patch:
        patch.setattr(together, "transaction", refused)
        with pytest.raises(OneFailed) as failed:
            writer.write_together(batches)
    assert (failed.value.target, type(failed.value.__cause__)) == (None, SinkAway)
    writer.write_together(batches)
    assert shown() == [B] * 3


def test_a_catalog_that_answers_nobody_is_nobodys_fault(writer, begun, shown, monkeypatch) -> None:
    """All targets then wait for it. One whose table can't be loaded is one target's."""

    def refuse(*words: object) -> None:
        raise Py4JError("Connection refused")

    batches = begun.batches(("U", 1, "b", 2), through=2)
    with monkeypatch.context() as patch:
        for broken, kind in (("load", SinkUnavailable), ("check", SinkAway)):
            patch.setattr(LakeCatalog, broken, refuse)
            with pytest.raises(OneFailed) as failed:
                writer.write_together(batches)
            assert type(failed.value.__cause__) is kind
    writer.write_together(batches)
    assert shown() == [B] * 3
