"""Runs of key changes over the batches of one process."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from actors.contract.effects import Stage
from actors.contract.messages import Staged, StageFailed
from actors.staging.staged_tables import ParquetTables, StagedStorage
from actors.staging.work import StageWork
from changes.formats import FORMATS
from changes.formats.auto import AutoFormat
from changes.formats.engine.format import Headers, mark_of
from changes.formats.engine.key_runs import REMEMBERED
from changes.model.model import FormatOptions
from changes.routes.shaping.shape import Shape
from tests.actors.staging.test_work import OTHER, UPSERT, done, lane
from tests.actors.target.processor_rig import ROUTES, ProcessorRig
from tests.changes.formats.debezium.messages import ORACLE, change, envelope, record

OLD, NEW = [("__debezium.oldkey", b'{"id":2}')], [("__debezium.newkey", b'{"id":3}')]
CAME = change("c", {"id": 1, "v": "a"}, headers=OLD)
LEFT = change("d", None, {"id": 1, "v": "b"}, source=ORACLE, headers=NEW)
"""Of another row than the one that came: that one stays."""
PLAIN = change("c", {"id": 7, "v": "c"})


def by_key(tables: StagedStorage | None = None) -> StageWork:
    """Debezium's JSON, each key in one partition."""
    format_ = FORMATS["debezium-json"](FormatOptions(by_key=True))
    return StageWork(format_, ParquetTables() if tables is None else tables)


@pytest.mark.parametrize(("held", "deletes"), [(0, False), (5, True)])
def test_a_run_of_keys_ends_where_another_member_has_written(
    tmp_path: Path, held: int, deletes: bool
) -> None:
    """The row that leaves the key is not the one that this member saw coming there."""
    work = by_key()
    first, second = lane(CAME), replace(lane(LEFT, start=9), held=held)
    path = str(tmp_path / "a.parquet")
    assert done(work.stage(Stage(UPSERT, (), (first,)), path)).rows == 1
    found = work.stage(Stage(UPSERT, (), (second,)), path)
    assert isinstance(found, Staged)
    assert found.has_deletes == deletes


@pytest.mark.parametrize("other", [PLAIN, change("d", None, {"id": 7, "v": "c"}, headers=NEW)])
def test_a_run_of_keys_goes_on_though_other_lanes_come_between(
    tmp_path: Path, other: bytes
) -> None:
    """A table over several partitions: what they hold is of other keys, in any batch."""
    work, path = by_key(), str(tmp_path / "a.parquet")
    done(work.stage(Stage(UPSERT, (), (lane(CAME), lane(other, source=OTHER))), path))
    more = lane(other, source=OTHER, start=5), lane(LEFT, start=9)
    found = done(work.stage(Stage(UPSERT, (), more), path))
    assert 1 not in pq.read_table(path)["id"].cast(pa.int64()).to_pylist()
    assert found.rows == 1


def test_a_run_of_keys_ends_at_a_record_that_could_not_be_applied(tmp_path: Path) -> None:
    """It may have been of the row that came: the row that leaves is that one, with other values."""
    work, path = by_key(), str(tmp_path / "a.parquet")
    bad = record({**envelope("u", {"id": 1, "v": "b"}), "op": "?"}, {"id": 1})
    assert done(work.stage(Stage(UPSERT, (), (lane(CAME, bad, LEFT),)), path)).bad is not None
    assert done(work.stage(Stage(UPSERT, (), (lane(LEFT, start=2),)), path)).has_deletes


REORDERED = change("c", {"w": 1, "id": 7, "v": "c"})
"""Of a source whose columns were dropped and added since."""


@pytest.mark.parametrize("shape", [Shape(), Shape(rename=(("v", "w"),))])
@pytest.mark.parametrize("name", ["debezium-json", "auto"])
def test_a_run_of_keys_goes_on_over_columns_that_another_lane_redefines(
    tmp_path: Path, shape: Shape, name: str
) -> None:
    """A new decoder knows where the others' changes of keys stand, whatever its columns' order."""
    options = FormatOptions(by_key=True)
    format_ = AutoFormat(options) if name == "auto" else FORMATS[name](options)
    work, path = StageWork(format_, ParquetTables()), str(tmp_path / "a.parquet")
    route = replace(UPSERT, shape=shape)

    mark = mark_of("debezium-json") if name == "auto" else b""

    done(work.stage(Stage(route, (), (lane(mark + CAME),)), path))
    more = lane(mark + REORDERED, source=OTHER), lane(mark + LEFT, start=9)
    assert not done(work.stage(Stage(route, (), more, generation=1), path)).has_deletes


def test_a_run_of_keys_goes_on_where_its_own_lane_needs_a_new_decoder(tmp_path: Path) -> None:
    """Its columns are those of before: another lane's were others meanwhile. The new decoder's
    first record is a delete, which names no columns of the table."""
    work, path = by_key(), str(tmp_path / "a.parquet")
    done(work.stage(Stage(UPSERT, (), (lane(CAME),)), path))
    respelled = change("c", {"id": 7, "V": "c"})
    done(work.stage(Stage(UPSERT, (), (lane(respelled, source=OTHER),), generation=1), path))
    left = lane(change("u", {"id": 8, "v": "d"}), LEFT, start=9)
    bad = done(work.stage(Stage(UPSERT, (), (left,), generation=1), path)).bad
    assert bad is not None
    assert bad.of_table
    first = lane(LEFT, PLAIN, start=9)
    assert not done(work.stage(Stage(UPSERT, (), (first,), generation=2), path)).has_deletes


def test_what_was_not_written_is_decoded_again_as_at_first(tmp_path: Path) -> None:
    """A write fails, or its partition goes and comes back: what is read again goes on from the run
    that the write before it has left. One that began amid changes of keys is as doubtful again."""
    work, path = by_key(), str(tmp_path / "a.parquet")
    done(work.stage(Stage(UPSERT, (), (lane(PLAIN, CAME),)), path))
    later = replace(lane(LEFT, PLAIN, start=9), held=1)
    for _ in range(2):
        again = done(work.stage(Stage(UPSERT, (), (later,)), path))
        assert (again.has_deletes, again.cut) == (False, False)
    another = replace(lane(LEFT, PLAIN, start=20), held=15)
    for _ in range(2):
        again = done(work.stage(Stage(UPSERT, (), (another,)), path))
        assert (again.has_deletes, again.cut) == (True, True)


def test_of_a_run_with_very_many_keys_only_its_end_is_known(tmp_path: Path) -> None:
    """A copy for each batch that may be read again would be too much to remember."""
    work, path = by_key(), str(tmp_path / "a.parquet")
    many = [change("c", {"id": n, "v": "a"}, headers=OLD) for n in range(REMEMBERED + 1)]
    done(work.stage(Stage(UPSERT, (), (lane(*many),)), path))
    later = replace(lane(LEFT, start=5_000), held=REMEMBERED)
    assert not done(work.stage(Stage(UPSERT, (), (later,)), path)).cut
    assert done(work.stage(Stage(UPSERT, (), (later,)), path)).cut


class FullOnce(ParquetTables):
    """The disk takes no file at first."""

    full = True

    def write(self, path: str, table: pa.Table) -> int:
        full, self.full = self.full, False
        if full:
            raise OSError("disk full")
        return super().write(path, table)


@pytest.mark.parametrize("shape", [Shape(), Shape(rename=(("v", "w"),))])
def test_what_is_staged_again_after_a_full_disk_is_decoded_as_at_first(
    tmp_path: Path, shape: Shape
) -> None:
    """A row that had come to its key before stays, as it does where the disk takes the file."""
    tables, path = FullOnce(), str(tmp_path / "a.parquet")
    tables.full = False
    work, route = by_key(tables), replace(UPSERT, shape=shape)
    done(work.stage(Stage(route, (), (lane(CAME),)), path))
    tables.full, again = True, Stage(route, (), (lane(LEFT, PLAIN, start=9),))
    assert isinstance(work.stage(again, path), StageFailed)
    assert not done(work.stage(again, path)).has_deletes


# What a table says, where reading begins amid them.

T = "lake.db.t"
ROW_BY_ROW, AT_THE_END = (
    {"connector": name, "db": "db", "table": "t"} for name in ("mysql", "sqlserver")
)
"""Sources, by when they check keys."""


def moved(old: int, new: int, name: str, source: Any) -> Iterator[bytes]:
    """A row takes another key, by a delete and an insert."""
    left: Headers = (("__debezium.newkey", b'{"id":%d}' % new),)
    came: Headers = (("__debezium.oldkey", b'{"id":%d}' % old),)
    yield change("d", None, {"id": old, "name": name}, source=source, headers=left)
    yield change("c", {"id": new, "name": name}, source=source, headers=came)


def swap(source: Any) -> list[tuple[int, bytes]]:
    """Two rows come, and take each other's key in one statement: with their offsets."""
    rows = [change("c", {"id": n, "name": f"of {n}"}, source=source) for n in (1, 2)]
    return list(enumerate([*rows, *moved(1, 2, "of 1", source), *moved(2, 1, "of 2", source)], 1))


CROSSED = {("1",): "of 2", ("2",): "of 1"}


def cut(rig: ProcessorRig, records: list[tuple[int, bytes]], place: int) -> str | None:
    """A process ends once it has written the records before that place; the next reads the rest.
    Gives the table's mark."""
    rig.send("t", *records[:place])
    rig.settle()
    rig.start()
    rig.epoch += 1
    rig.send("t", *records[place:])
    rig.settle()
    return rig.states[T].rows_may_differ


def test_a_table_that_is_cut_between_crossing_changes_is_marked(tmp_path: Path) -> None:
    """The row that came to key 2 is deleted by the change that takes another one away from it."""
    rig = ProcessorRig(tmp_path, "debezium-json")
    mark = cut(rig, swap(AT_THE_END), 4)
    assert rig.rows[T] == {("1",): "of 2"}
    assert mark == (
        "lake.db.t: reading began amid changes of keys, up to binlog:0 offset 6: a row that took "
        "another's key just before may be missing"
    )
    (said,) = [log for log in rig.logs if log.event == "rows_may_differ"]
    assert (said.level, said.fields["what"]) == ("warning", mark)
    assert "`binlogd tables verify" in said.fields["help"]


@pytest.mark.parametrize("place", [1, 3, 5])
def test_elsewhere_its_rows_are_right(tmp_path: Path, place: int) -> None:
    """After an insert nothing is open; where a row has just come, the next change may be of the
    row that had its key."""
    rig = ProcessorRig(tmp_path, "debezium-json")
    assert cut(rig, swap(AT_THE_END), place) is None
    assert rig.rows[T] == CROSSED


def test_what_comes_before_a_process_begins_may_be_a_change_of_a_key(tmp_path: Path) -> None:
    """Nothing says that it was none: such a table is marked, though it is right."""
    rig = ProcessorRig(tmp_path, "debezium-json")
    assert cut(rig, swap(AT_THE_END), 2) is not None
    assert rig.rows[T] == CROSSED


@pytest.mark.parametrize("place", [1, 2, 3, 4])
def test_rows_of_mysql_only_move_to_free_keys(tmp_path: Path, place: int) -> None:
    """It checks keys row by row: no such change is doubted."""
    free = [each for n, each in swap(ROW_BY_ROW) if n != 2]
    rig = ProcessorRig(tmp_path, "debezium-json")
    assert cut(rig, list(enumerate(free, 1)), place) is None


def test_a_table_that_is_not_there_yet_lacks_nothing(tmp_path: Path) -> None:
    """Its log begins with a change of a key."""
    rig = ProcessorRig(tmp_path, "debezium-json")
    rig.send("t", *enumerate(moved(1, 2, "of 1", AT_THE_END), 1))
    rig.settle()
    assert rig.states[T].rows_may_differ is None
    assert rig.logged("rows_may_differ") == []


# Rows that are equal but for their keys.


@pytest.mark.parametrize("shape", [Shape(), Shape(rename=(("name", "called"),))])
@pytest.mark.parametrize("first", [True, False])
def test_where_equal_rows_may_have_crossed_the_table_is_marked(
    tmp_path: Path, shape: Shape, first: bool
) -> None:
    """``SET id = id + 1`` over two rows of one name, in the write that makes the table, or later:
    the second looks as the first one that moves on, and so it does away with that row."""
    routes = [replace(route, shape=shape) for route in ROUTES]
    rig = ProcessorRig(tmp_path, "debezium-json", routes)
    rows = [change("c", {"id": n, "name": "a"}, source=AT_THE_END) for n in (1, 2)]
    moves = [*moved(1, 2, "a", AT_THE_END), *moved(2, 3, "a", AT_THE_END)]
    records = list(enumerate([*rows, *moves], 1))
    for some in [records] if first else (records[:2], records[2:]):
        rig.send("t", *some)
        rig.settle()
    assert list(rig.rows[T]) == [("3",)]  # the source has 2, too
    mark = rig.states[T].rows_may_differ
    assert mark is not None
    assert mark.startswith("lake.db.t: of two changes of keys, up to binlog:0 offset 6, nothing")
    assert mark.endswith("two that are equal but for their keys: a row may be missing")


def test_a_row_of_mysql_that_moves_twice_is_one_row(tmp_path: Path) -> None:
    """Its keys are free when a row comes."""
    rig = ProcessorRig(tmp_path, "debezium-json")
    came = change("c", {"id": 1, "name": "a"}, source=ROW_BY_ROW)
    moves = [*moved(1, 2, "a", ROW_BY_ROW), *moved(2, 3, "a", ROW_BY_ROW)]
    rig.send("t", *enumerate([came, *moves], 1))
    rig.settle()
    assert rig.rows[T] == {("3",): "a"}
    assert rig.states[T].rows_may_differ is None
