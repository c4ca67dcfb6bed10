"""The whole flow with a schema registry that is away, slow, late and emptied at any time."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from actors.contract import messages as msg
from changes.model.model import DdlPolicy
from tests.simulation.durable import Durable
from tests.simulation.lives import live_through
from tests.simulation.oracle import assert_equal
from tests.simulation.schemas.registry import registry_in
from tests.simulation.shape import Shape
from tests.simulation.staging import RealStaging
from tests.simulation.stream import Stream, random_stream
from tests.simulation.world import World

FAILING = {"sink_fails": 0.3, "disk_fails": 0.2, "refusals": 2}


def stream_in(folder: Path, rng: random.Random) -> Stream:
    shape = Shape(
        ddl=0.1, bad=0.1, quarantine=True, policy=DdlPolicy("keep", "follow"),
        registry=registry_in(folder),
    )  # fmt: skip
    return random_stream(rng, 50, shape=shape)


@pytest.mark.parametrize("seed", range(20))
def test_each_change_is_applied_once_whatever_the_registry_does(seed: int, tmp_path: Path) -> None:
    """No loss, order kept, nothing decoded with another schema than the writer's."""
    rng = random.Random(seed)
    stream = stream_in(tmp_path / "schemas", rng)
    durable = live_through(stream, rng, 2, 3, FAILING, staging=RealStaging)
    assert_equal(durable, stream)


@pytest.mark.parametrize("seed", range(10))
def test_an_emptied_registry_stops_it_until_it_is_mended(seed: int, tmp_path: Path) -> None:
    """At some step its numbers mean something else: it ends by name, or before it was compared.
    In no life after that is anything decoded until the registry has its first schemas back."""
    rng = random.Random(seed)
    stream = stream_in(tmp_path / "schemas", rng)
    durable = Durable.of(stream)
    world = World(durable, rng, staging=RealStaging, crash_at=rng.randrange(20, 400))
    world.run()
    emptied = World(durable, rng, staging=RealStaging, crash_at=5000)
    assert emptied.registry is not None
    emptied.registry.emptied, emptied.registry.away = True, 0.0
    emptied.run()
    failed = [each for each in emptied.heard if isinstance(each, msg.PipelineFailed)]
    for each in failed:
        assert "is another one than before" in each.reason
    while not World(durable, rng, staging=RealStaging).run():
        pass
    last = World(durable, rng, staging=RealStaging)
    last.run()
    assert not [each for each in last.heard if isinstance(each, msg.PipelineFailed)]
    assert_equal(durable, stream)


@pytest.mark.long
def test_each_fault_occurs_often(tmp_path: Path) -> None:
    """What the seeds never come to is not proved by them."""
    counts: Counter[str] = Counter()
    for seed in range(20):
        rng = random.Random(seed)
        worlds: list[World] = []
        stream = stream_in(tmp_path / str(seed), rng)
        live_through(stream, rng, 2, 3, FAILING, staging=RealStaging, worlds=worlds)
        for world in worlds:
            counts.update(world.seen)
    for name in ("SchemasKept", "RegistryState", "WantSchemas"):
        assert counts[name] >= 20, counts
