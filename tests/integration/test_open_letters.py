"""The count of open letters on the real broker, for both stores."""

from __future__ import annotations

import pytest

from daemon.config.pipeline_config import PipelineConfig
from daemon.state.dead_letters.open import OpenLetters
from tests.integration.rig import Rig
from tests.integration.test_dead_letter_commands import World


@pytest.fixture(params=["file", pytest.param("topic", marks=pytest.mark.long)])
def world(rig: Rig, request: pytest.FixtureRequest) -> World:
    return World(rig, request.param)


def test_open_letters_are_counted_in_either_store(world: World) -> None:
    """From run to run, reading what is new: replayed and discarded ones count no more."""
    world.rig.produce(*(world.row(key) for key in range(3)))
    count = OpenLetters(PipelineConfig(world.settings, "p"))
    assert count() == 0
    for offset in (0, 1, 2, 2):
        world.letter(offset)
    assert count() == 3
    done = world.run("discard", f"{world.source}:1", "--execute")
    assert (done.exit_code, done.stderr) == (0, "")
    assert count() == 2
    done = world.run("replay", f"{world.source}:0", "--execute")
    assert (done.exit_code, done.stderr) == (0, "")
    world.rig.produce(world.row(9))
    assert count() == OpenLetters(PipelineConfig(world.settings, "p"))() == 1
    assert [each["state"] for each in world.listed()] == ["replayed", "discarded", "open"]
