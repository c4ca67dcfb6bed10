"""Runs of key changes over the batches of one process."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from actors.contract.effects import Stage
from actors.contract.messages import Staged, StageFailed
from actors.staging.staged_tables import ParquetTables, StagedStorage
from actors.staging.work import StageWork
from changes.formats import FORMATS
from changes.formats.auto import AutoFormat
from changes.formats.engine.format import mark_of
from changes.model.model import FormatOptions
from changes.routes.shaping.shape import Shape
from tests.actors.staging.test_work import OTHER, UPSERT, done, lane
from tests.changes.formats.debezium.messages import change, envelope, record

OLD, NEW = [("__debezium.oldkey", b'{"id":2}')], [("__debezium.newkey", b'{"id":3}')]
CAME = change("c", {"id": 1, "v": "a"}, headers=OLD)
LEFT = change("d", None, {"id": 1, "v": "b"}, headers=NEW)
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
