"""Where a message is, as it is recorded: whatever failed, the answer is the oracle's."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from changes.model.model import DdlPolicy
from offsets.position import TopicPartition
from offsets.where import Reached, whereabouts
from tests.simulation.durable import Durable
from tests.simulation.partitions import COMMITTER
from tests.simulation.shape import Shape
from tests.simulation.staging import RealStaging
from tests.simulation.stream import random_stream
from tests.simulation.world import World

SHAPE = Shape(ddl=0.1, bad=0.1, quarantine=True, policy=DdlPolicy("keep", "follow"))


def held_against(durable: Durable, counts: Counter[Reached]) -> None:
    """Each message that is for a target, of those that the stream has."""
    for source, due in durable.due.items():
        for message in due:
            bad = {t for s, o, t in durable.letters if (s, o) == (source, message.offset)}
            letters = {target or "": "open" for target in bad}
            for target in (*message.targets, *filter(None, message.bad)):
                found = whereabouts(durable.snapshot, source, message.offset, target, letters)
                counts[found.stage] += 1
                check(durable, source, message.offset, target, found.stage)


def check(
    durable: Durable, source: TopicPartition, offset: int, target: str, stage: Reached
) -> None:
    """What is durable says the same; a table may be further than the record knows."""
    has = durable.sink.marks(target).get(source, -1) >= offset
    state = durable.snapshot.partitions.get(source)
    match stage:
        case Reached.APPLIED:
            assert has
        case Reached.SPILLED:
            assert durable.holds_spilled(target, source, offset) or has
        case Reached.WAITING:
            assert state is None or offset >= state.frontier
        case Reached.DEAD_LETTER:
            assert {(source, offset, target), (source, offset, None)} & set(durable.letters)
        case _:
            raise AssertionError(f"{target} {source}:{offset}: {stage}")


def lives(seed: int, counts: Counter[Reached]) -> None:
    rng = random.Random(seed)
    stream = random_stream(rng, rng.choice((60, 200)), shape=SHAPE)
    durable = Durable.of(stream)
    faults = {"sink_fails": rng.choice((0, 0.4)), "refusals": rng.choice((0, 2, 9))}
    for life in range(4):
        rate = 0.02 if life < 3 else 0.0
        world = World(durable, rng, crash_rate=rate, staging=RealStaging, **faults)
        ended = world.run()
        durable.save(world.logics[COMMITTER].snapshot())
        held_against(durable, counts)
        if ended:
            return


@pytest.mark.parametrize("seeds", [range(n, n + 12) for n in range(0, 60, 12)])
def test_what_is_told_is_so(seeds: range) -> None:
    """Amid crashes, refusals, quarantines and bad records; each answer comes up."""
    counts = Counter[Reached]()
    for seed in seeds:
        lives(seed, counts)
    expected = {Reached.APPLIED, Reached.WAITING, Reached.SPILLED, Reached.DEAD_LETTER}
    assert counts.keys() == expected, counts
    assert counts.total() > 2000, counts
