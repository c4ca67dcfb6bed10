"""The whole flow under a seeded scheduler: each change once, whatever crashes and fails."""

from __future__ import annotations

import random

import pytest

from actors import messages as msg
from tests.simulation.oracle import assert_equal
from tests.simulation.staging import RealStaging
from tests.simulation.stream import SOURCES, random_stream
from tests.simulation.world import COMMITTER, FETCHER, Durable, World, live_through


@pytest.mark.parametrize("seed", range(100))
def test_tables_equal_the_oracle_with_the_real_decoder(seed: int) -> None:
    """Crash anywhere, lose replies, fill the disk, rebalance: nothing is lost or comes twice."""
    rng = random.Random(seed)
    stream = random_stream(rng, messages=60)
    faults = {"sink_fails": rng.choice((0, 0.4)), "disk_fails": rng.choice((0, 0.3))}
    durable = live_through(
        stream,
        rng,
        crashes=rng.randrange(4),
        revokes=rng.choice((0, 4)),
        faults=faults,
        staging=RealStaging,
    )
    assert_equal(durable, stream)


@pytest.mark.parametrize("life", ["smooth", "with a sink and a disk that fail"])
def test_a_crash_at_every_single_effect(life: str) -> None:
    """One stream, a crash before its first effect, its second, ... its last: all end alike."""
    faults = {} if life == "smooth" else {"sink_fails": 0.3, "disk_fails": 0.2}
    stream = random_stream(random.Random(11), messages=40)
    crash_at = 0
    while True:
        crash_at += 1
        durable = Durable(stream.log, stream.end)
        # The same seed each time: up to the crash it is the same life.
        whole = World(durable, random.Random(11), crash_at=crash_at, **faults).run()
        assert World(durable, random.Random(crash_at), **faults).run()
        assert_equal(durable, stream)
        if whole:
            break
    assert crash_at > 100  # there was nothing left to crash at


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
        world = World(durable, rng, sink_fails=0.3, disk_fails=0.3)
        while not any(isinstance(event, msg.CaughtUp) for event in world.heard):
            world.act()
            for source, offset in durable.committed.items():
                # The file before Kafka: a broker that knows more than the file is another's word.
                assert offset <= durable.snapshot.partitions[source].frontier
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
