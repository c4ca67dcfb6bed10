"""What a rebuild is planned with: names that fit and are new, and a target that is known."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from daemon.config.file import load
from daemon.config.pipeline_config import PipelineConfig
from daemon.operations.rebuild.plan import RebuildRequest, new_table, pipeline_of, put_aside
from daemon.state.edits import EditRefused
from offsets.snapshot import Snapshot
from tests.daemon.operations.rebuild.test_rebuilds import NEW, OLD, T, filling
from tests.daemon.state.test_offset_transfer import World as Configured


def test_the_names_are_new_each_time() -> None:
    """A renamed table keeps its folder: the next one must not be filled into it."""
    assert new_table(OLD, "1") != new_table(OLD, "2")
    assert put_aside(OLD, NEW) == OLD._replace(table="t__before_1")


@pytest.mark.parametrize("name", ["t" * 53, "t" * 63, "ü" * 31, "テーブル" * 5, "x" * 200])
def test_a_long_name_leaves_room(name: str) -> None:
    """Each name fits everywhere; two long ones that begin alike have two."""
    long, other = OLD._replace(table=name), OLD._replace(table=name[:-1] + "!")
    for number in ("0123456789ab0", "1"):
        new = new_table(long, number)
        names = [new, put_aside(long, new), new_table(other, number), long]
        assert len({each.table for each in names}) == 4
        assert all(len(each.table.encode()) <= 63 for each in names[:3])
        assert new.table.rpartition("_")[2] == number


def test_an_unknown_target_is_refused_with_the_known_ones() -> None:
    """Whatever pipeline it may be of."""
    assert pipeline_of([Snapshot("q", "g"), filling()], T).pipeline == "p"
    with pytest.raises(EditRefused, match=r"lake\.s\.u: unknown.*lake\.s\.t"):
        pipeline_of([filling()], "lake.s.u")


def test_a_target_whose_sink_was_taken_out_is_refused(tmp_path: Path) -> None:
    """Once that is recorded, no start could end it, nor give it up."""
    snapshot = Configured(tmp_path).snapshot(8, hwm=7)
    gone = replace(snapshot, targets={"old.s.t": snapshot.targets["lake.s.t"]})
    wanted = RebuildRequest(PipelineConfig(load(tmp_path / "config.toml"), "shop"), "old.s.t", "1")
    with pytest.raises(EditRefused, match=r"old\.s\.t: the configuration has no sink 'old'"):
        wanted(gone)
