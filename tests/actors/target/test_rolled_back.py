"""A target that shows less than it is known to have published is not written on from there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from actors.contract import effects as fx
from actors.contract import messages as msg
from actors.contract.writes import TargetState
from actors.runtime.mailbox import Tick
from changes.model.model import Mode, TableSchema
from offsets.position import TopicPartition
from offsets.snapshot import TargetMark
from tests.actors.target.processor_rig import S0, ProcessorRig, canal

T = "lake.db.t"
SCHEMA = TableSchema((), ())


def restarted(
    recorded: int, found: int | None, begins: int, folder: Path | None = None, **settings: bool
) -> ProcessorRig:
    """A process that reads from ``begins``, of a target with these marks."""
    rig = ProcessorRig(folder, **settings)
    rig.recorded = {T: TargetMark("v7", {S0: recorded})}
    rig.begins = begins
    if found is not None:
        rig.states[T] = TargetState(SCHEMA, Mode.UPSERT, {S0: found}, "v3")
    rig.start()
    return rig


def test_a_target_rolled_back_while_nobody_ran_stops_with_the_commands() -> None:
    """Writing on would leave a hole that nobody sees."""
    rig = restarted(100, 50, 101)
    rig.send("t", (101, canal("t", 1, "a")))
    rig.settle()
    (failed,) = rig.heard(msg.PipelineFailed)
    assert "binlog:0 stands at 50, stood at 100, and is read from 101" in failed.reason
    assert "binlogd tables rebuild lake.db.t" in failed.reason
    assert rig.states[T].hwms == {S0: 50}


@pytest.mark.parametrize(("mark", "stops"), [(50, True), (100, False), (None, False)])
def test_a_start_beyond_a_mark_that_nothing_records_stops(mark: int | None, stops: bool) -> None:
    """File and commit are lost, and ``latest`` begins at the end: what the target holds says less,
    so there is a hole. One that holds all of it goes on, and so does one that never had any."""
    rig = ProcessorRig()
    if mark is not None:
        rig.states[T] = TargetState(SCHEMA, Mode.UPSERT, {S0: mark}, "v3")
    rig.begins, rig.unrecorded = 101, True
    rig.send("t", (101, canal("t", 1, "a")))
    rig.settle()
    reasons = [failed.reason for failed in rig.heard(msg.PipelineFailed)]
    if not stops:
        assert reasons == []
        assert rig.states[T].hwms == {S0: 101}
        return
    (reason,) = reasons
    assert "holds binlog:0 through 50, no position is recorded, and reading begins at 101" in reason
    assert "--topic binlog --partition 0 --to earliest" in reason
    assert rig.states[T].hwms == {S0: 50}


@pytest.mark.parametrize("there", [False, True])
def test_a_table_that_begins_where_the_groups_commit_is_may_lack_rows(there: bool) -> None:
    """A second lake under an old group's name: its tables would begin in the middle, and look well.
    One that was there holds what it holds."""
    rig = ProcessorRig()
    if there:
        rig.states[T] = TargetState(SCHEMA, Mode.UPSERT, {S0: 50}, "v3")
    rig.begins = rig.adopted = 101
    rig.send("t", (101, canal("t", 1, "a")))
    rig.settle()
    mark = rig.states[T].rows_may_differ
    assert rig.states[T].hwms == {S0: 101}
    if there:
        assert mark is None
        return
    assert mark is not None
    assert "reading began at binlog:0 offset 101, where the group's commit was" in mark
    assert len(rig.logged("rows_may_differ")) == 1
    rig.send("t", (102, canal("t", 2, "b")))
    rig.settle()
    assert rig.states[T].rows_may_differ == mark


def test_a_table_that_somebody_dropped_is_not_begun_anew_in_the_middle() -> None:
    """It would hold the new rows alone."""
    rig = restarted(100, None, 101)
    rig.send("t", (101, canal("t", 1, "a")))
    rig.settle()
    (failed,) = rig.heard(msg.PipelineFailed)
    assert "the table is gone" in failed.reason
    assert T not in rig.states


def test_a_target_that_is_read_again_from_its_mark_on_goes_on() -> None:
    """That is what a reset does."""
    rig = restarted(100, 50, 51)
    rig.send("t", (51, canal("t", 1, "a")), (101, canal("t", 2, "b")))
    rig.settle()
    assert rig.states[T].hwms == {S0: 101}


def test_a_target_ahead_of_its_record_goes_on() -> None:
    """The crash came between publish and file."""
    rig = restarted(100, 105, 101)
    rig.send("t", (104, canal("t", 1, "a")), (106, canal("t", 2, "b")))
    rig.settle()
    assert rig.states[T].hwms == {S0: 106}


def test_a_rollback_while_the_partition_was_elsewhere_is_found() -> None:
    """What this process itself has written is known as well as what the last one had."""
    rig = ProcessorRig()
    rig.send("t", (5, canal("t", 1, "a")))
    rig.settle()
    rig.feed(msg.Forget((S0,), rig.epoch))
    rig.states[T] = TargetState(SCHEMA, Mode.UPSERT, {S0: 2}, "v1")
    rig.epoch, rig.begins = 2, 6
    rig.send("t", (6, canal("t", 2, "b")))
    rig.settle()
    (failed,) = rig.heard(msg.PipelineFailed)
    assert "stands at 2, stood at 5, and is read from 6" in failed.reason


def test_with_quarantine_the_others_go_on(tmp_path: Path) -> None:
    """The rolled back target's changes are kept, and a release finds the hole again."""
    rig = restarted(100, 50, 101, tmp_path, quarantine=True)
    rig.send("t", (101, canal("t", 1, "a")))
    rig.send("u", (102, canal("u", 1, "a")))
    rig.settle()
    assert rig.listed[T].lanes == {S0: (101, 101)}
    assert rig.states["lake.db.u"].hwms == {S0: 102}
    rig.feed(msg.RetryTarget(T))
    rig.settle()
    assert rig.states[T].hwms == {S0: 50}
    assert rig.listed[T].lanes == {S0: (101, 101)}
    assert not rig.heard(msg.PipelineFailed)


@pytest.mark.parametrize("hwms", [{S0: 100}, {S0: 100, TopicPartition("binlog", 1): 7}])
def test_a_history_of_its_own_is_told_where_nothing_is_missing(
    hwms: Mapping[TopicPartition, int],
) -> None:
    """A table that was put in another's place, with all that we published: a warning."""
    rig = ProcessorRig()
    rig.recorded = {T: TargetMark("v7", {S0: 100})}
    rig.begins = 101
    rig.start()
    rig.send("t", (101, canal("t", 1, "a")))
    opening = rig.work.popleft()
    assert opening.recorded == TargetMark("v7", {S0: 100})
    state = TargetState(SCHEMA, Mode.UPSERT, hwms, "v3", diverged=True)
    effects = rig.logic.handle(msg.Opened(opening.target, state), 0.0)
    said = [effect.event for effect in effects if isinstance(effect, fx.Log)]
    assert said == ["history_replaced"]
    assert rig.logic.handle(Tick(), 0.0)
