"""The whole flow under a seeded scheduler: each change once, whatever crashes and fails."""

from __future__ import annotations

import random

import pytest

from actors import messages as msg
from tests.simulation.world import (
    COMMITTER,
    FETCHER,
    SOURCES,
    Durable,
    Stream,
    World,
    live_through,
    random_stream,
)

SEEDS = range(400)


def assert_equal(durable: Durable, stream: Stream) -> None:
    """The tables equal the oracle's, and the changelog has every change once, in lane order."""
    for name, rows in stream.tables.items():
        assert durable.sink.tables.get(name, {}) == rows, name
    written = durable.sink.logs.get("lake.log.all", [])
    for source, log in stream.changelog.items():
        assert [entry for entry in written if entry[1] == source.partition] == log, source


@pytest.mark.parametrize("seed", SEEDS)
def test_tables_equal_the_oracle_after_crashes_and_failures(seed: int) -> None:
    """Crash anywhere, lose replies, fill the disk, rebalance: nothing is lost or comes twice."""
    rng = random.Random(seed)
    stream = random_stream(rng, messages=60)
    faults = {"sink_fails": rng.choice((0, 0.4)), "disk_fails": rng.choice((0, 0.3))}
    durable = live_through(
        stream, rng, crashes=rng.randrange(4), revokes=rng.choice((0, 4)), faults=faults
    )
    assert_equal(durable, stream)


def test_the_same_seed_gives_the_same_trace() -> None:
    """A failure can be replayed exactly."""
    traces = []
    for _ in range(2):
        rng = random.Random(7)
        stream = random_stream(rng, messages=40)
        world = World(Durable(stream.log, stream.end), rng, sink_fails=0.2)
        world.run()
        traces.append(world.trace)
    assert traces[0] == traces[1]


def test_the_frontier_never_passes_a_change_that_is_not_applied() -> None:
    """At every step: what may be committed is in the targets."""
    for seed in range(20):
        rng = random.Random(seed)
        stream = random_stream(rng, messages=40)
        durable = Durable(stream.log, stream.end)
        world = World(durable, rng, sink_fails=0.3)
        while not any(isinstance(event, msg.CaughtUp) for event in world.heard):
            world.act()
            for source, state in durable.snapshot.partitions.items():
                wanted = [e for e in stream.changelog[source] if e[2] < state.frontier]
                written = durable.sink.logs.get("lake.log.all", [])
                mine = [entry for entry in written if entry[1] == source.partition]
                assert mine[: len(wanted)] == wanted


def test_a_replay_of_everything_changes_nothing() -> None:
    """With file and commit lost, all is read again and dropped at the targets' marks."""
    rng = random.Random(3)
    stream = random_stream(rng, messages=60)
    durable = live_through(stream, rng, crashes=0, revokes=0, faults={})
    versions = {name: state.version for name, state in durable.sink.states.items()}
    again = Durable(stream.log, stream.end, sink=durable.sink)
    assert World(again, rng).run()
    assert_equal(again, stream)
    assert {name: s.version for name, s in again.sink.states.items()} == versions


def test_a_stop_in_mid_stream_commits_nothing_that_is_not_applied() -> None:
    """Drain, save, close: the next life goes on from there, with each change once."""
    for seed in range(60):
        rng = random.Random(seed)
        stream = random_stream(rng, messages=60)
        durable = Durable(stream.log, stream.end)
        world = World(durable, rng, sink_fails=0.2)
        for _ in range(rng.randrange(5, 60)):
            world.act()
        world.control[FETCHER].append(msg.StopFetching())
        while sum(isinstance(event, msg.Drained) for event in world.heard) < 2:
            world.act()
        world.control[COMMITTER].append(msg.SaveNow())
        while not any(isinstance(event, msg.SourceClosed) for event in world.heard):
            world.act()
        assert World(durable, rng).run()
        assert_equal(durable, stream)


def test_a_stalled_sink_pauses_reading_at_the_bound() -> None:
    """With no write ever ending, what is held stays within mailbox, buffers and one poll."""
    rng = random.Random(1)
    stream = random_stream(rng, messages=2000, tables=1)
    world = World(Durable(stream.log, stream.end), rng, sink_fails=1.0)
    for _ in range(5000):
        world.act()
    held = sum(
        chunk.size
        for address, logic in world.logics.items()
        if address.role == "processor"
        for buffer in logic._buffers.values()
        for chunk in buffer.chunks
    )
    waiting = sum(batch.size for queue in world.data.values() for batch in queue)
    parked = sum(batch.size for queue in world.logics[FETCHER]._parked.values() for batch in queue)
    total = sum(len(value) for _, value in stream.log[SOURCES[0]])
    assert held + waiting + parked < 40_000 < total
