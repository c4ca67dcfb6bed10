"""Where a message is, as it is recorded: whatever failed, the answer is the oracle's."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from changes.model.model import DdlPolicy
from offsets.gate import why_shut
from offsets.position import TopicPartition
from offsets.where import Reached, whereabouts
from tests.simulation.durable import Durable
from tests.simulation.partitions import COMMITTER
from tests.simulation.shape import Shape
from tests.simulation.staging import RealStaging
from tests.simulation.stream import random_stream
from tests.simulation.world import World

COMPLETE = "complete"

SHAPE = Shape(ddl=0.1, bad=0.1, quarantine=True, policy=DdlPolicy("keep", "follow"))


def held_against(durable: Durable, counts: Counter[str]) -> None:
    """Each message that is for a target, of those that the stream has."""
    for source, due in durable.due.items():
        for message in due:
            bad = {t for s, o, t in durable.letters if (s, o) == (source, message.offset)}
            letters = {target or "": "open" for target in bad}
            for target in (*message.targets, *filter(None, message.bad)):
                found = whereabouts(durable.snapshot, source, message.offset, target, letters)
                counts[found.stage] += 1
                check(durable, source, message.offset, target, found.stage)


def gated(durable: Durable, rng: random.Random, counts: Counter[str]) -> None:
    """Where a table is said to be complete up to a place, it has each message below it."""
    for source, due in durable.due.items():
        for end in (message.offset + 1 for message in rng.sample(due, min(8, len(due)))):
            for target in {target for message in due for target in message.targets}:
                letters = [(s, o) for s, o, t in durable.letters if t in (None, target)]
                if why_shut(durable.snapshot, target, {source: end}, letters) is not None:
                    continue
                counts[COMPLETE] += 1
                mine = [m.offset for m in due if target in m.targets and m.offset < end]
                assert max(mine, default=-1) <= durable.sink.marks(target).get(source, -1)
                assert not any(durable.holds_spilled(target, source, at) for at in mine)


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


def lives(seed: int, counts: Counter[str]) -> None:
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
        gated(durable, rng, counts)
        if ended:
            return


@pytest.mark.parametrize("seeds", [range(n, n + 12) for n in range(0, 60, 12)])
def test_what_is_told_is_so(seeds: range) -> None:
    """Amid crashes, refusals, quarantines and bad records; each answer comes up."""
    counts = Counter[str]()
    for seed in seeds:
        lives(seed, counts)
    expected = {Reached.APPLIED, Reached.WAITING, Reached.SPILLED, Reached.DEAD_LETTER}
    assert counts.keys() == {*expected, COMPLETE}, counts
    assert counts[COMPLETE] > 100, counts
    assert counts.total() > 2000, counts
