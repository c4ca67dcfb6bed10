"""What tables of counts say of partitions that are closed: of two pipelines, in SQLite."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from changes.model.model import TargetName
from daemon.cli.gate.held_minutes import HeldMinutes, LateChanges
from daemon.config.file import load
from daemon.config.pipeline_config import pipelines_of
from offsets.counts import RowCounts
from offsets.gate_record import ClosedPartition
from sparkwriter.kit.marks_table.sqlite_ledger import table_name

LENGTH_MS = 60_000
TABLES = {"a": "a.shop.orders", "b": "b.shop.items"}
COLUMNS = (
    "target, topic, partition_number, since, through, minute, inserted, updated, deleted, after,"
    " made"
)


class CountedPair:
    """Two pipelines, ``a`` and ``b``, with a table of counts each."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._through = folder, 0
        text = f'[daemon]\nstate_dir = "{folder}/state"\n[kafka]\n"bootstrap.servers" = "x:1"\n'
        for name in TABLES:
            text += (
                f'[sink.{name}]\nkind = "sqlite"\npath = "{folder}/{name}.db"\n'
                f'[pipeline.{name}]\ntopics = ["{name}"]\nformat = "canal-json"\n'
                f'counts = "{name}.binlogd.counts"\ninclude = ["*"]\n'
                f'target = "{name}.{{database}}.{{table}}"\n'
            )
            with closing(self._database(name)) as database:
                database.execute(f"CREATE TABLE {self._table(name)} ({COLUMNS})")
        config = folder / "binlogd.toml"
        config.write_text(text)
        self._pipelines = pipelines_of(load(config))

    def _database(self, name: str) -> sqlite3.Connection:
        return sqlite3.connect(self._folder / f"{name}.db", isolation_level=None)

    def _table(self, name: str) -> str:
        return f'"{table_name(TargetName(name, "binlogd", "counts"))}"'

    def count(self, name: str, minute: int, made: int) -> None:
        """One more insert of a pipeline's table is in its counts."""
        self._through += 1
        row = TABLES[name], name, 0, f"r{self._through}", self._through, minute, 1, 0, 0
        with closing(self._database(name)) as database:
            places = ", ".join("?" * 11)
            database.execute(
                f"INSERT INTO {self._table(name)} VALUES ({places})",
                (*row, self._through - 1, made),
            )

    def held(self, *names: str) -> HeldMinutes:
        return HeldMinutes((self._pipelines[name], [TABLES[name]]) for name in names)

    def closed(self, minute: int, *names: str) -> ClosedPartition:
        """A partition of one minute, as it closes now."""
        now = self.held(*names).of(range(minute, minute + 1))
        return ClosedPartition(minute * LENGTH_MS, 1, 0, now.counts, now.made)


@pytest.fixture
def pair(tmp_path: Path) -> CountedPair:
    made = CountedPair(tmp_path)
    made.count("a", 1, 100)
    made.count("b", 1, 200)
    return made


def reopened(late: LateChanges, held: HeldMinutes, *closed: ClosedPartition) -> list[int]:
    return [begin // LENGTH_MS for begin, _ in late.changed(held, closed, LENGTH_MS)]


def test_a_late_change_is_seen_whatever_the_other_tables_clock_says(pair: CountedPair) -> None:
    """Each table of counts has a clock of its own, and what it says is seen once it is written."""
    closed, late, held = pair.closed(1, "a", "b"), LateChanges(), pair.held("a", "b")
    assert reopened(late, held, closed) == []
    pair.count("a", 1, 150)
    assert reopened(late, held, closed) == [1]


def test_a_table_that_is_added_to_a_gate_reopens_nothing(pair: CountedPair) -> None:
    """Nothing was told of it then. The others' changes still do."""
    closed, late, held = pair.closed(1, "a"), LateChanges(), pair.held("a", "b")
    assert closed.counts == {TABLES["a"]: RowCounts(1, 0, 0)}
    assert reopened(late, held, closed) == []
    pair.count("b", 1, 300)
    assert reopened(late, held, closed) == []
    pair.count("a", 1, 301)
    assert reopened(late, held, closed) == [1]


def test_a_reopening_that_could_not_be_recorded_is_found_again(pair: CountedPair) -> None:
    closed, late, held = pair.closed(1, "a"), LateChanges(), pair.held("a")
    pair.count("a", 1, 101)
    found = late.changed(held, [closed], LENGTH_MS)
    assert next(found)[0] == LENGTH_MS
    found.close()  # the disk is full
    assert reopened(late, held, closed) == [1]
    assert reopened(late, held, closed) == []
