"""The whole flow under a seeded scheduler: each change once, whatever crashes and fails."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections import Counter

import pytest

from actors.contract import messages as msg
from changes.model.model import DdlPolicy
from tests.simulation.durable import Durable
from tests.simulation.lives import live_through
from tests.simulation.oracle import assert_equal
from tests.simulation.partitions import COMMITTER, FETCHER
from tests.simulation.shape import PLAIN, Shape, random_shape
from tests.simulation.source import CHANGELOG
from tests.simulation.staging import RealStaging
from tests.simulation.stream import SOURCES, random_stream
from tests.simulation.world import World

FAILING = {"sink_fails": 0.3, "disk_fails": 0.2, "refusals": 2}
ONE_LANE = Shape(
    ddl=0.2, bad=0.1, split=0.3, minimal=True, quarantine=True, policy=DdlPolicy("keep", "follow")
)
MULTI_ENTRY = Shape(ddl=0.3, several=0.6, quarantine=True, policy=DdlPolicy("keep", "follow"))
TOLD = Shape(ddl=0.1, bad=0.5, auto=True, quarantine=True)
LANES = Shape(ddl=0.1, bad=0.1, split=0.3, lanes=True, quarantine=True, quarantine_bytes=1500)


@pytest.mark.parametrize("seed", range(100))
def test_tables_equal_the_oracle_with_the_real_decoder(seed: int) -> None:
    """Crash anywhere, lose replies, fill the disk, rebalance: nothing is lost or comes twice."""
    rng = random.Random(seed)
    stream = random_stream(rng, 60, shape=random_shape(rng))
    faults = {
        "sink_fails": rng.choice((0, 0.4)),
        "disk_fails": rng.choice((0, 0.3)),
        "refusals": rng.choice((0, 2)),
    }
    durable = live_through(
        stream,
        rng,
        crashes=rng.randrange(4),
        revokes=rng.choice((0, 4)),
        faults=faults,
        staging=RealStaging,
    )
    assert_equal(durable, stream)


@pytest.mark.parametrize("seed", range(15))
def test_tables_equal_where_the_format_is_told_from_the_messages(seed: int) -> None:
    """What came before it was told waits, through crashes and rebalances, and none is lost."""
    rng = random.Random(seed)
    stream = random_stream(rng, 50, shape=TOLD)
    worlds: list[World] = []
    durable = live_through(stream, rng, 2, 3, FAILING, staging=RealStaging, worlds=worlds)
    assert_equal(durable, stream)
    # A life ends when all is applied, and its disk may not have taken the last save.
    last = worlds[-1].logics[COMMITTER].snapshot()
    assert last.formats == {SOURCES[0].topic: "canal-json"}


@pytest.mark.long
@pytest.mark.parametrize(
    ("shape", "messages", "faults"),
    [
        (PLAIN, 40, {}),
        (PLAIN, 40, FAILING),
        (ONE_LANE, 30, FAILING),
        (LANES, 30, FAILING),
        (MULTI_ENTRY, 20, {}),
        (MULTI_ENTRY, 20, FAILING),
    ],
    ids=[
        "smooth",
        "failing",
        "all-of-one-lane",
        "all-of-several-lanes",
        "several-smooth",
        "several-failing",
    ],
)
def test_a_crash_at_every_single_effect(
    shape: Shape, messages: int, faults: dict[str, float]
) -> None:
    """One stream, a crash before its first effect, its second, ... its last: all end alike."""
    stream = random_stream(random.Random(11), messages, shape=shape)
    crash_at = 0
    while True:
        crash_at += 1
        durable = Durable.of(stream)
        # The same seed each time: up to the crash it is the same life.
        whole = World(durable, random.Random(11), crash_at=crash_at, **faults).run()
        assert World(durable, random.Random(crash_at), **faults).run()
        assert_equal(durable, stream)
        if whole:
            break
    assert crash_at > 100  # there was nothing left to crash at


@pytest.mark.long
def test_each_feature_occurs_often() -> None:
    """What the seeds never come to is not proved by them."""
    counts: Counter[str] = Counter()
    for seed in range(100):
        rng = random.Random(seed)
        stream = random_stream(rng, 40, shape=random_shape(rng))
        worlds: list[World] = []
        live_through(stream, rng, 1, 2, FAILING, worlds=worlds)
        for world in worlds:
            counts.update(name for name, often in world.seen.items() if often)
        counts.update(lanes=stream.shape.lanes, minimal=stream.shape.minimal)
    for name in (
        "AddColumn", "DropColumn", "RenameColumn", "TruncateTable", "DropTable", "moves_to",
        "takes_from", "Spill", "EndSpill", "KeepDeadLetter", "RACED", "REFUSED", "WAITS",
        "runs", "fragments", "lanes", "minimal", "LogRange", "Reread",
        "away", "back", "pieces", "amid", "begun", "marks_alone", "renamed_amid",
    ):  # fmt: skip
        assert counts[name] >= 3, (name, counts)


def trace_of(seed: int) -> list[str]:
    """What happens in one life, in order."""
    rng = random.Random(seed)
    stream = random_stream(rng, 40, shape=ONE_LANE)
    world = World(Durable.of(stream), rng, revokes=2, **FAILING)
    world.run()
    return world.trace


def test_the_same_seed_gives_the_same_trace() -> None:
    """A failure can be replayed exactly."""
    assert trace_of(7) == trace_of(7)


def test_the_same_seed_gives_the_same_trace_in_another_process() -> None:
    """Nothing goes by the order of a set, which is another one in each process."""
    program = (
        "import hashlib; from tests.simulation.test_flow import trace_of;"
        "print(*(hashlib.sha256('\\n'.join(trace_of(seed)).encode()).hexdigest()"
        " for seed in range(5)))"
    )
    told = {
        subprocess.run(
            [sys.executable, "-c", program],
            env=os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(told) == 1


def test_the_frontier_never_passes_a_change_that_is_not_applied() -> None:
    """At every step: what may be committed is in the targets, in a spill, or a dead letter.

    The other half, that marks tell the truth, ``Durable`` leaves to the tables' comparison.
    """
    for seed in range(20):
        rng = random.Random(seed)
        stream = random_stream(rng, messages=40)
        durable = Durable.of(stream)
        world = World(durable, rng, sink_fails=0.3, disk_fails=0.3)
        while not world.ended:
            world.act()
            for source, state in durable.snapshot.partitions.items():
                wanted = [e for e in stream.changelog[source] if e[2] < state.frontier]
                table = durable.sink.tables.get(CHANGELOG)
                written = [] if table is None else table.entries
                mine = [entry for entry in written if entry[1] == source.partition]
                assert mine[: len(wanted)] == wanted


def test_a_replay_of_everything_changes_nothing() -> None:
    """With file and commit lost, all is read again and dropped at the targets' marks."""
    rng = random.Random(3)
    stream = random_stream(rng, messages=60)
    durable = live_through(stream, rng, crashes=0, revokes=0, faults={})
    versions = dict(durable.sink.versions)
    again = Durable.of(stream)
    again.sink = durable.sink
    assert World(again, rng).run()
    assert_equal(again, stream)
    assert again.sink.versions == versions


def test_a_stop_in_mid_stream_commits_nothing_that_is_not_applied() -> None:
    """Drain, save, close: the next life goes on from there, with each change once. What waits for
    a target in quarantine may never drain: then the process ends without."""
    for seed in range(100):
        rng = random.Random(seed)
        stream = random_stream(rng, 60, shape=random_shape(rng))
        durable = Durable.of(stream)
        world = World(durable, rng, sink_fails=0.2, refusals=2)
        for _ in range(rng.randrange(5, 120)):
            world.act()
        world.control[FETCHER].append(msg.StopFetching())
        acts = 0
        while sum(isinstance(event, msg.Drained) for event in world.heard) < 2 and acts < 3000:
            world.act()
            acts += 1
        world.control[COMMITTER].append(msg.SaveNow())
        while not any(isinstance(event, msg.SourceClosed) for event in world.heard):
            world.act()
        assert World(durable, rng).run()
        assert_equal(durable, stream)


def test_a_stalled_sink_pauses_reading_at_the_bound() -> None:
    """With no write ever ending, what is held stays within mailbox, buffers and one poll."""
    rng = random.Random(1)
    stream = random_stream(rng, messages=2000, tables=1)
    world = World(Durable.of(stream), rng, sink_fails=1.0)
    for _ in range(5000):
        world.act()
    held = sum(
        chunk.messages.size
        for address, logic in world.logics.items()
        if address.role == "processor"
        for buffer in logic._buffers.values()
        for chunk in buffer.queue.chunks
    )
    waiting = sum(batch.size for queue in world.data.values() for batch in queue)
    parked = world.logics[FETCHER]._offers.parked_bytes
    total = sum(len(value) for _, value in stream.log[SOURCES[0]])
    assert held + waiting + parked < 40_000 < total
