"""Commands ask any source that keeps the port: here one without a broker, a command a group."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from daemon.cli.__main__ import app
from daemon.config.file import load
from daemon.config.pipeline_config import PipelineConfig
from daemon.operations.checks.check import connect_problems
from daemon.operations.rebuild.plan import RebuildRequest
from daemon.state.edits import EditRefused
from daemon.state.offset_file import OffsetFile
from offsets.recovery import Watermarks
from offsets.snapshot_text import encode
from sources.base.port import GroupMember
from tests.daemon.state.test_offset_transfer import World
from tests.sources.fake_source import FakeSource


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A state directory and a configuration; no broker is at the address in it."""
    made = World(tmp_path)
    OffsetFile(made.state, "shop").save(made.snapshot(8, 8, hwm=7))
    return made


@pytest.fixture
def source(world: World, monkeypatch: pytest.MonkeyPatch) -> FakeSource:
    """A log of offsets 0 to 19, of which the group has committed 8."""
    logs = {world.source: Watermarks(0, 20)}
    return FakeSource(logs, commits={world.source: 8}).opened(monkeypatch)


def run(world: World, *words: str) -> Result:
    return CliRunner().invoke(app, [*words, "-c", str(world.folder / "config.toml")])


def test_offsets_reset_moves_the_file_and_the_sources_group(
    world: World, source: FakeSource
) -> None:
    done = run(world, "offsets", "reset", "--to", "earliest", "--execute")
    assert done.exit_code == 0, done.output
    recorded = world.recorded()
    assert recorded is not None
    assert (recorded.partitions[world.source].frontier, source.commits[world.source]) == (0, 0)


def test_offsets_reset_leaves_a_group_that_others_read(world: World, source: FakeSource) -> None:
    source.group_members.append(GroupMember("other", "elsewhere", None))
    done = run(world, "offsets", "reset", "--to", "earliest", "--execute")
    assert done.exit_code == 2
    assert "other at elsewhere" in done.output
    assert source.commits == {world.source: 8}


def test_offsets_import_is_checked_against_the_log(world: World, source: FakeSource) -> None:
    file = world.folder / "positions.json"
    file.write_text(encode(world.snapshot(25, 8)))
    done = run(world, "offsets", "import", str(file))
    assert done.exit_code != 0
    assert "25" in done.output
    assert world.recorded() == world.snapshot(8, 8, hwm=7)


def test_a_rebuild_is_refused_where_the_log_is_not_whole(world: World, source: FakeSource) -> None:
    config = load(world.folder / "config.toml")
    recorded = world.recorded()
    assert recorded is not None
    request = RebuildRequest(PipelineConfig(config, "shop"), "lake.s.t", "1")
    assert "lake.s.t" in request(recorded).rebuilds
    source.logs[world.source] = Watermarks(3, 20)
    with pytest.raises(EditRefused, match="the log is not whole any more"):
        request(recorded)


def test_the_check_asks_the_source(world: World, source: FakeSource) -> None:
    source.away = True
    found = connect_problems(load(world.folder / "config.toml"), list)
    assert next(found) == "pipeline.shop: nobody is there"
