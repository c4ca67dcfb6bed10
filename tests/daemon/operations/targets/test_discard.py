"""``binlogd tables discard`` without a daemon: what it says, does, and refuses."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from typer.testing import CliRunner, Result

from actors.contract.raw_messages import SpillRecord
from changes.model.model import TargetName
from daemon.cli.__main__ import app
from daemon.state.offset_file import OffsetFile
from daemon.state.spills.file import SpillFolder
from offsets.rebuild import Rebuild
from offsets.snapshot import UNWRITTEN, MarkMoves, Snapshot, SpillMark, TargetMark
from tests.daemon.state.test_offset_transfer import World
from tests.integration.rig import canal

TARGET = TargetName("lake", "s", "t")


def spilled(world: World) -> Snapshot:
    """Two messages of the table s.t, listed and in their file."""
    records = [SpillRecord(world.source, n, False, canal("s.t", "INSERT", [])) for n in (5, 6)]
    SpillFolder(world.state, "shop").of(TARGET).append(TARGET, "refused", records)
    mark = SpillMark(1, {world.source: (5, 6)})
    snapshot = replace(world.snapshot(8, 8), spills={str(TARGET): mark})
    OffsetFile(world.state, "shop").save(snapshot)
    return snapshot


def discard(world: World, *options: str) -> Result:
    config = str(world.folder / "config.toml")
    return CliRunner().invoke(app, ["tables", "discard", *options, "-c", config])


def exclude(world: World) -> None:
    path = world.folder / "config.toml"
    path.write_text(path.read_text() + 'exclude = ["s.*"]\n')


def test_a_dry_run_changes_nothing(tmp_path: Path) -> None:
    """And says what would be lost."""
    world = World(tmp_path)
    before = spilled(world)
    exclude(world)
    done = discard(world, str(TARGET))
    assert done.exit_code == 0, done.output
    assert f"2 messages ({_bytes(world)} bytes: {world.source} 5..6)" in done.stdout
    assert "nothing was changed" in done.stdout
    assert world.recorded() == before
    assert len(SpillFolder(world.state, "shop").held()) == 1


def _bytes(world: World) -> int:
    return SpillFolder(world.state, "shop").held()[0].state.bytes


def test_what_no_route_wants_is_given_up_and_said_of_the_target(tmp_path: Path) -> None:
    """The table lacks those rows for good."""
    world = World(tmp_path)
    spilled(world)
    exclude(world)
    size = _bytes(world)
    done = discard(world, str(TARGET), "--execute")
    assert done.exit_code == 0, done.output
    recorded = world.recorded()
    assert recorded is not None
    assert not recorded.spills
    assert recorded.targets[str(TARGET)].rows_may_differ == (
        f"{UNWRITTEN}2 messages ({size} bytes: {world.source} 5..6) of its spill were discarded"
    )
    assert SpillFolder(world.state, "shop").held() == ()


def test_a_target_that_is_fed_keeps_its_spill(tmp_path: Path) -> None:
    """What comes next would be written behind the hole; so where its messages can't be read."""
    world = World(tmp_path)
    before = spilled(world)
    done = discard(world, str(TARGET), "--execute")
    assert done.exit_code == 2
    assert "is still fed" in done.stderr
    path = world.folder / "config.toml"
    path.write_text(path.read_text().replace("canal-json", "maxwell-json"))
    assert discard(world, str(TARGET), "--execute").exit_code == 2
    assert world.recorded() == before
    assert len(SpillFolder(world.state, "shop").held()) == 1


def test_one_that_broke_off_behind_its_files_end_may_be_repeated(tmp_path: Path) -> None:
    """A kill before the snapshot was stored: no start goes on without that spill."""
    world = World(tmp_path)
    before = spilled(world)
    SpillFolder(world.state, "shop").drop(TARGET)
    refused = discard(world, str(TARGET), "--execute")
    assert refused.exit_code == 2  # it is fed: what is missing may come back from a copy
    assert world.recorded() == before
    exclude(world)
    done = discard(world, str(TARGET))
    assert (done.exit_code, "listed and not there" in done.stdout) == (0, True), done.output
    done = discard(world, str(TARGET), "--execute")
    assert done.exit_code == 0, done.output
    recorded = world.recorded()
    assert recorded is not None
    assert not recorded.spills
    assert "of its spill were discarded" in recorded.targets[str(TARGET)].rows_may_differ


def test_what_is_not_recorded_is_found_by_its_file(tmp_path: Path) -> None:
    """The offset file is lost."""
    world = World(tmp_path)
    spilled(world)
    OffsetFile(world.state, "shop").path.unlink()
    exclude(world)
    done = discard(world, str(TARGET), "--execute")
    assert done.exit_code == 0, done.output
    assert SpillFolder(world.state, "shop").held() == ()


def test_a_reset_that_waits_is_given_up(tmp_path: Path) -> None:
    """The marks stay as they are."""
    world = World(tmp_path)
    mark = TargetMark("77", {world.source: 3}, MarkMoves({world.source: 0}, {}))
    OffsetFile(world.state, "shop").save(replace(world.snapshot(1, 1), targets={str(TARGET): mark}))
    assert f"{world.source} to 0" in discard(world, str(TARGET)).stdout
    assert discard(world, str(TARGET), "--execute").exit_code == 0
    recorded = world.recorded()
    assert recorded is not None
    assert recorded.targets[str(TARGET)] == replace(mark, moves=None)


def test_what_is_not_there_is_refused(tmp_path: Path) -> None:
    """A name that is unknown, a target that is whole, one that is being rebuilt."""
    world = World(tmp_path)
    snapshot = world.snapshot(8, 8)
    OffsetFile(world.state, "shop").save(snapshot)
    unknown = discard(world, "lake.s.x")
    assert unknown.exit_code == 2
    assert "there are: lake.s.t" in unknown.stderr
    assert "nothing is kept for it" in discard(world, str(TARGET)).stderr
    rebuilds = {str(TARGET): Rebuild("lake.s.t__rebuild_1", {world.source: 3})}
    OffsetFile(world.state, "shop").save(replace(snapshot, rebuilds=rebuilds))
    assert "--cancel" in discard(world, str(TARGET)).stderr
