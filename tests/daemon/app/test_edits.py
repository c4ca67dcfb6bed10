"""How a pipeline is stopped, changed and started again, and what becomes of it otherwise."""

from __future__ import annotations

import queue
from collections.abc import Callable, Collection
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from actors.contract import effects as fx
from actors.contract import messages as msg
from actors.contract.addresses import Address
from daemon.app.edits import Edited, EditRequested, Edits
from daemon.app.lifecycle import Finish, Lifecycle, PipelineHeld
from daemon.app.topology import PipelineParts
from daemon.config.file import load
from daemon.config.pipeline_config import PipelineConfig
from daemon.state.edits import Change, EditFailed, EditRefused, Fate, edit_offline
from daemon.state.offset_file import OffsetFile, lock_state_dir
from offsets.snapshot import PartitionState, Snapshot
from offsets.snapshot_text import decode
from settings.exit import Exit
from tests.daemon.state.test_offset_transfer import World


class Rig:
    """Edits over a life cycle, and, as ``Lives``, what touches actors and stores. ``act`` makes the
    changed snapshot of a pipeline."""

    processors = 1

    def __init__(self, act: Callable[[str, Change], Snapshot] | None = None) -> None:
        self.life = Lifecycle({"a": 1, "b": 1}, 60)
        self.results: queue.SimpleQueue[Edited] = queue.SimpleQueue()
        self.started: list[object] = []
        self.stores = ["a", "b"]
        self.there: list[str] = []
        self.change = act or (lambda name, change: change(Snapshot(name, "g")))
        self.edits = Edits(self.life, self, self.results.put)

    def open(self, name: str) -> None:
        self.stores.append(name)

    def parts(self, name: str, recorded: Snapshot) -> PipelineParts:
        return cast(PipelineParts, ("parts", recorded))

    def end(self, name: str) -> None:
        self.stores.remove(name)

    def start(self, parts: PipelineParts) -> None:
        self.started.append(parts)

    def changed(self, pipelines: Collection[str]) -> None:
        self.there = sorted(pipelines)

    def begin(
        self,
        change: Change = lambda snapshot: snapshot,
        name: str = "a",
        fate: Fate = Fate.RUNS_AGAIN,
    ) -> Future[None]:
        done: Future[None] = Future()
        self.carry_out(self.edits.begin(EditRequested(name, change, done, fate), 0.0))
        return done

    def stops(self) -> None:
        """The pipeline drains and its consumer leaves."""
        for event in (msg.Drained(Address("a", "processor")), msg.SourceClosed("a")):
            self.carry_out(self.life.handle(event, 1.0))

    def ends(self) -> list[object]:
        """What the edit's thread says is heard."""
        return self.edits.ended(self.results.get(timeout=30), 2.0)

    def carry_out(self, effects: list[object]) -> None:
        for effect in effects:
            if isinstance(effect, PipelineHeld):
                self.edits.held(effect)

    @property
    def stage(self) -> str:
        return self.life.stages()["a"]


def refuse(snapshot: Snapshot) -> Snapshot:
    raise EditRefused("no")


def fail(name: str, change: Change) -> Snapshot:
    change(Snapshot(name, "g"))
    raise EditFailed("the disk is full")


def test_a_pipeline_that_runs_is_drained_changed_and_runs_again() -> None:
    """Its life goes on; the other one's was never touched."""
    rig = Rig()
    done = rig.begin(lambda snapshot: Snapshot("a", "changed"))
    assert (rig.stage, done.done()) == ("draining", False)
    rig.stops()
    assert rig.stage == "held"
    rig.ends()
    assert rig.started == [("parts", Snapshot("a", "changed"))]
    assert rig.life.stages() == {"a": "running", "b": "running"}
    assert done.result(0) is None


def test_a_pipeline_that_has_failed_is_started_anew() -> None:
    """That is the way on for a group that was rewound."""
    rig = Rig()
    rig.life.handle(msg.PipelineFailed("a", "rewound"), 0.0)
    rig.stops()
    done = rig.begin()
    rig.ends()
    assert (rig.stage, rig.life.failures(), done.result(0)) == ("running", {}, None)


def test_a_refused_change_leaves_the_pipeline_as_it_was() -> None:
    """It runs again unchanged, and who asked hears why."""
    rig = Rig()
    done = rig.begin(refuse)
    rig.stops()
    rig.ends()
    assert (rig.stage, rig.started) == ("running", [("parts", Snapshot("a", "g"))])
    with pytest.raises(EditRefused, match="no"):
        done.result(0)


def test_a_refused_change_of_a_failed_pipeline_leaves_its_failure() -> None:
    """It does not run, and the reason is what it was."""
    rig = Rig()
    rig.life.handle(msg.PipelineFailed("a", "rewound"), 0.0)
    rig.stops()
    done = rig.begin(refuse)
    rig.ends()
    assert (rig.stage, rig.started, rig.life.failures()) == ("ended", [], {"a": "rewound"})
    assert isinstance(done.exception(0), EditRefused)


def test_a_pipeline_that_only_stands_still_is_as_it_was() -> None:
    """One that ran runs again; one that had failed has its failure still. No refusal is heard."""
    rig = Rig()
    done = rig.begin(fate=Fate.AS_IT_WAS)
    rig.stops()
    rig.ends()
    assert (rig.stage, rig.started) == ("running", [("parts", Snapshot("a", "g"))])
    assert done.result(0) is None
    rig.life.handle(msg.PipelineFailed("a", "rewound"), 0.0)
    rig.stops()
    done = rig.begin(fate=Fate.AS_IT_WAS)
    rig.ends()
    assert (rig.stage, len(rig.started), rig.life.failures()) == ("ended", 1, {"a": "rewound"})
    assert done.result(0) is None


@pytest.mark.parametrize("fate", [Fate.RUNS_AGAIN, Fate.AS_IT_WAS])
def test_a_change_that_could_not_be_stored_ends_the_pipeline_named(fate: Fate) -> None:
    """The process goes on with the others."""
    rig = Rig(fail)
    done = rig.begin(fate=fate)
    rig.stops()
    assert not [e for e in rig.ends() if isinstance(e, Finish)]
    assert (rig.stage, rig.life.failures()) == ("ended", {"a": "the disk is full"})
    assert isinstance(done.exception(0), EditFailed)


def test_a_fault_nobody_foresaw_does_not_leave_it_held() -> None:
    """What it was is said."""

    def broken(name: str, change: Change) -> Snapshot:
        raise KeyError("oops")

    rig = Rig(broken)
    done = rig.begin()
    rig.stops()
    rig.ends()
    assert rig.stage == "ended"
    assert "KeyError" in str(done.exception(0))


def test_one_edit_of_a_pipeline_at_a_time() -> None:
    """The second hears so at once; the first goes on."""
    rig = Rig()
    first = rig.begin()
    assert isinstance(rig.begin().exception(0), EditRefused)
    rig.stops()
    rig.ends()
    assert first.result(0) is None


def test_a_held_pipeline_does_not_end_the_process() -> None:
    """Though it is the only one left, and nothing runs for a moment."""
    rig = Rig()
    rig.life.handle(msg.PipelineFailed("b", "bad record"), 0.0)
    rig.life.handle(msg.Drained(Address("b", "processor")), 0.0)
    rig.life.handle(msg.SourceClosed("b"), 0.0)
    rig.begin()
    assert not rig.life.stopping
    rig.stops()
    assert not rig.life.stopping
    rig.ends()
    assert rig.stage == "running"


def test_a_stop_in_the_middle_waits_for_the_edit_and_starts_nothing() -> None:
    """What is recorded is whole; the pipeline does not begin again only to end."""
    rig = Rig()
    done = rig.begin()
    rig.stops()
    rig.life.handle(msg.StopRequested("SIGTERM"), 1.0)
    out = rig.ends()
    assert (rig.stage, rig.started, done.result(0)) == ("ended", [], None)
    assert not [e for e in out if isinstance(e, Finish)]  # b drains still


def test_a_stop_does_not_wait_for_ever() -> None:
    """An edit that hangs is left behind at the drain's deadline, and its word comes too late."""
    rig = Rig()
    rig.begin()
    rig.stops()
    rig.life.handle(msg.StopRequested("SIGTERM"), 1.0)
    rig.life.handle(msg.Drained(Address("b", "processor")), 1.0)
    rig.life.handle(msg.SourceClosed("b"), 1.0)
    assert Finish(Exit.DEADLINE) in rig.life.tick(61.0)
    assert rig.ends() == []
    assert rig.stage == "ended"


def test_no_edit_while_the_daemon_stops() -> None:
    """And none of a pipeline that there is not."""
    rig = Rig()
    rig.life.handle(msg.StopRequested("SIGTERM"), 1.0)
    assert "stopping" in str(rig.begin().exception(0))
    done: Future[None] = Future()
    Rig().edits.begin(EditRequested("c", refuse, done), 0.0)
    assert "pipeline c: unknown; there are: a, b" in str(done.exception(0))


def test_the_end_of_the_process_is_heard_by_who_waits() -> None:
    """A crash of something else must not leave an operator's command hanging."""
    rig = Rig()
    done = rig.begin()
    rig.edits.close()
    assert isinstance(done.exception(0), EditFailed)


def test_what_comes_from_the_former_life_is_nothing_to_the_next() -> None:
    """A late word of its consumer must not end a pipeline that is held."""
    rig = Rig()
    rig.begin()
    rig.stops()
    assert rig.life.handle(msg.SourceClosed("a"), 1.5) == []
    failed = rig.life.handle(msg.PipelineFailed("a", "old"), 1.5)
    assert not [e for e in failed if isinstance(e, fx.Tell | Finish)]
    rig.ends()
    assert (rig.stage, rig.life.failures()) == ("running", {})


# --- offline


def lower(snapshot: Snapshot) -> Snapshot:
    source, state = next(iter(snapshot.partitions.items()))
    return replace(snapshot, partitions={source: PartitionState(state.frontier - 2)})


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(tmp_path)
    OffsetFile(made.state, "shop").save(made.snapshot(5))
    return made


def test_offline_the_file_is_changed(world: World) -> None:
    """What the change leaves alone stays, and the file before is kept."""
    changed = edit_offline(PipelineConfig(load(world.folder / "config.toml"), "shop"), lower)
    assert changed == world.recorded() == world.snapshot(3)
    previous = OffsetFile(world.state, "shop").previous
    assert decode(previous.read_text()) == world.snapshot(5)


def test_offline_a_running_daemon_is_an_obstacle(world: World) -> None:
    """It would overwrite what was changed."""
    with (
        lock_state_dir(world.state),
        pytest.raises(EditRefused, match="is used by another binlogd"),
    ):
        edit_offline(PipelineConfig(load(world.folder / "config.toml"), "shop"), lower)


def test_offline_a_refusal_writes_nothing(world: World) -> None:
    """The file is as it was."""
    with pytest.raises(EditRefused, match="no"):
        edit_offline(PipelineConfig(load(world.folder / "config.toml"), "shop"), refuse)
    assert world.recorded() == world.snapshot(5)
