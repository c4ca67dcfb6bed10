"""A keyed table whose rows come in two partitions without an order: refused in any order."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from actors.contract import messages as msg
from tests.simulation.durable import Durable
from tests.simulation.group import Group, Member
from tests.simulation.source import target_of
from tests.simulation.stream import SOURCES, Stream, random_stream
from tests.simulation.world import World

ONE, OTHER = SOURCES
FAILING = {"sink_fails": 0.3, "disk_fails": 0.2}


def crossed(rng: random.Random) -> Stream:
    """One table, its rows in both partitions: some of the second come as early as those of the
    first, so that some wait while the table's first write is under way."""
    stream = random_stream(rng, 24, tables=1)
    for each in (stream.log, stream.messages, stream.due):
        found: list[object] = each[ONE]  # type: ignore[assignment]
        each[ONE], each[OTHER] = found[::2], found[1::2]  # type: ignore[assignment]
    stream.end[OTHER] = stream.end[ONE]
    return stream


@pytest.mark.parametrize("faults", [{}, FAILING], ids=["smooth", "failing"])
def test_two_lanes_without_an_order_are_never_written_together(faults: dict[str, float]) -> None:
    """Not even before the table's first write is known: what is staged behind it is of the other
    lane, and the target's marks say nothing of either yet."""
    for seed in range(120):
        rng = random.Random(seed)
        durable = Durable.of(crossed(rng))
        world = World(durable, rng, **faults)
        assert world.run()
        failed = [e.reason for e in world.heard if isinstance(e, msg.PipelineFailed)]
        assert failed, seed
        assert "partitions have no order between them" in failed[0], seed
        table = durable.sink.tables.get(target_of("t0"))
        assert table is None or len(table.marks.offsets) < 2, seed


@pytest.mark.parametrize("faults", [{}, FAILING], ids=["smooth", "failing"])
def test_two_members_with_a_lane_each_never_write_both(faults: dict[str, float]) -> None:
    """Each opens the table before it is there, and knows of no other lane than its own: only the
    sink sees both."""
    met = 0
    for seed in range(100):
        rng = random.Random(seed)
        stream = crossed(rng)
        group = Group({ONE: 0, OTHER: 1})
        first = Durable.of(stream)
        second = replace(Durable.of(stream), committed=first.committed, sink=first.sink)
        members = [Member(n, group, at, rng, **faults) for n, at in enumerate((first, second))]
        failed: list[str] = []
        while not failed:
            rng.choice(members).act()
            heard = (event for member in members for event in member.heard)
            failed = [each.reason for each in heard if isinstance(each, msg.PipelineFailed)]
            assert len(first.sink.marks(target_of("t0"))) < 2, seed
        assert "partitions have no order between them" in failed[0], seed
        assert 'use mode = "append"' in failed[0], seed
        met += "up to offset" in failed[0]
    assert met > 10
