"""``binlogd tables list`` where no daemon runs: what is recorded, and what can't be read."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from daemon.cli.__main__ import app
from daemon.state.offset_file import OffsetFile
from daemon.state.pauses import Pause, Pauses
from tests.daemon.state.test_offset_transfer import World


def listed(world: World, *options: str) -> Result:
    command = ["tables", "list", *options, "-c", str(world.folder / "config.toml")]
    return CliRunner().invoke(app, command, env={"COLUMNS": "200"})


def test_recorded_targets_are_listed(tmp_path: Path) -> None:
    """With their marks."""
    world = World(tmp_path)
    OffsetFile(world.state, "shop").save(world.snapshot(8, 8, hwm=7))
    done = listed(world, "--json")
    assert done.exit_code == 0, done.output
    (row,) = json.loads(done.stdout)
    marks = {f"{world.topic}:0": 7}
    assert (row["target"], row["phase"], row["high_water_marks"]) == ("lake.s.t", "recorded", marks)


def test_a_recorded_doubt_is_shown_before_the_target_is_opened(tmp_path: Path) -> None:
    """To programs and to people, with what happened."""
    world = World(tmp_path)
    snapshot = world.snapshot(8, 8, hwm=7)
    marks = {n: replace(m, rows_may_differ="s.t: n is int") for n, m in snapshot.targets.items()}
    OffsetFile(world.state, "shop").save(replace(snapshot, targets=marks))
    (row,) = json.loads(listed(world, "--json").stdout)
    assert row["rows_may_differ"] == "s.t: n is int"
    shown = listed(world).stdout
    assert "rows may differ" in shown
    assert "s.t: n is int" in shown


def test_damage_is_told_by_the_status_too(tmp_path: Path) -> None:
    """A list that may be short of targets is not one in good order."""
    world = World(tmp_path)
    OffsetFile(world.state, "shop").save(world.snapshot(8, 8))
    file = OffsetFile(world.state, "shop").path
    file.write_text(file.read_text().replace("8", "9"))
    done = listed(world, "--json")
    assert (done.exit_code, json.loads(done.stdout)) == (1, [])
    assert "the checksum does not match the content" in done.stderr


@pytest.mark.long
def test_what_another_store_holds_is_not_taken_for_nothing(tmp_path: Path) -> None:
    """Where its broker is away, that is said, instead of an empty list."""
    world = World(tmp_path, stores='offset_stores = ["kafka-topic"]')
    done = listed(world, "--json")
    assert done.exit_code == 2, done.output
    assert "pipeline.shop: what is recorded can't be read: kafka-topic: topic" in done.stderr


def test_a_pipeline_that_remembers_nothing_has_none(tmp_path: Path) -> None:
    """The group's commit knows partitions alone: no broker is asked."""
    done = listed(World(tmp_path, stores='offset_stores = ["kafka-commit"]'), "--json")
    assert (done.exit_code, json.loads(done.stdout)) == (0, [])


def test_a_paused_target_is_listed_before_a_change_opens_it(tmp_path: Path) -> None:
    """Else nothing says why its table stays away. One that is recorded is paused as well."""
    world = World(tmp_path)
    OffsetFile(world.state, "shop").save(world.snapshot(8, 8, hwm=7))
    pauses = Pauses(world.state)
    for name in ("lake.s.t", "lake.s.never", "shop"):
        pauses.put(name, Pause(1))
    rows = json.loads(listed(world, "--json").stdout)
    found = [(row["pipeline"], row["target"], row["phase"]) for row in rows]
    assert found == [("shop", "lake.s.t", "paused"), ("shop", "lake.s.never", "paused")]


def test_pauses_that_can_not_be_read_are_told(tmp_path: Path) -> None:
    """The list would say that nothing is paused."""
    world = World(tmp_path)
    (world.state / "pauses.json").write_text("{")
    done = listed(world)
    assert (done.exit_code, done.stdout) == (1, "")
    assert "damaged" in done.stderr
