"""Cuts: each table that is in one is as it was at that place of the log, whatever fails."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from actors.committer.cutting import ALL, CutWatch
from actors.contract import messages as msg
from actors.contract.addresses import Address
from actors.fetcher import cutting
from actors.fetcher.cutting import Cutting
from changes.model.model import DdlPolicy, TargetName
from offsets.cuts import WITHDRAWN, Cut, withdrawn_by
from offsets.position import TopicPartition
from offsets.recovery import Watermarks
from offsets.reset import ResetRequest, ResetSurroundings, ResetTo, plan_reset
from offsets.snapshot import MarkMoves
from sparkwriter.kit.writer import TargetWriter
from tests.simulation.durable import PIPELINE, Durable
from tests.simulation.partitions import COMMITTER, FETCHER
from tests.simulation.shape import Shape
from tests.simulation.sink import FakeSink, MemoryStore, Table
from tests.simulation.staging import RealStaging
from tests.simulation.stream import SOURCES, Stream, random_stream
from tests.simulation.world import World

CUTS = Address(PIPELINE, "cuts")
SHAPE = Shape(ddl=0.1, bad=0.1, quarantine=True, policy=DdlPolicy("keep", "follow"))


class Kept(FakeSink):
    """Every version of its tables can be read, as a lake's."""

    def __init__(self) -> None:
        super().__init__()
        self._shown: dict[tuple[str, str], tuple[Any, list[Any]] | None] = {}

    def changed(self, target: TargetName) -> str:
        version = super().changed(target)
        self.keep(str(target), version)
        return version

    def keep(self, name: str, version: str) -> None:
        """What a table shows now is what that version shows."""
        table = self.tables.get(name)
        self._shown[name, version] = None if table is None else shown(table)

    def at(self, name: str, version: str) -> tuple[Any, list[Any]] | None:
        """What a version shows; None where there was no table."""
        return self._shown[name, version]


def shown(table: Table) -> tuple[Any, list[Any]]:
    """A table's rows, and what a changelog lists, in which partitions have no common order."""
    return table.shown(), sorted(table.entries, key=lambda entry: entry[1:3])


class CutWorld(World):
    """Cuts are asked for all the time; each is held against a calm run over the log up to it."""

    def __init__(self, stream: Stream, durable: Durable, rng: random.Random, **more: Any) -> None:
        super().__init__(durable, rng, **more)
        self._stream = stream
        self.counts, self.cuts = Counter[str](), list[Cut]()
        fetcher, committer = self.logics[FETCHER], self.logics[COMMITTER]
        every_s = rng.choice((0.02, 0.2))
        fetcher._cutting = Cutting(PIPELINE, fetcher._sorter._format, fetcher._parts, every_s)
        committer._cut = CutWatch(PIPELINE, rng.choice((0.2, 5.0)))

    def _tell(self, to: Address, message: object) -> None:
        if to != CUTS:
            return super()._tell(to, message)
        assert isinstance(message, msg.CutReached)
        sink, asked = self.durable.sink, message.asked
        assert isinstance(sink, Kept)
        self.counts["again"] += ALL in message.left_out
        assert asked.positions.keys() == self._stream.log.keys()
        assert not any(map(self.logics[FETCHER]._parts.open, asked.positions))
        wanted = upto(self._stream, asked.positions).sink
        for name, version in message.versions.items():
            self.counts["tables"] += 1
            other = wanted.tables.get(name)
            assert sink.at(name, version) == (None if other is None else shown(other)), name
            self.counts["former"] += str(sink.versions[name]) != version
        left = set(wanted.tables) - message.versions.keys() - message.left_out.keys()
        assert not left or ALL in message.left_out, left
        self.counts["left_out"] += len(message.left_out)
        self.counts["cuts"] += 1
        if message.versions:
            row = asked.positions, None, None, message.versions, {}
            self.cuts.append(Cut(len(self.cuts), PIPELINE, "time", *row))
        return None


def upto(stream: Stream, ends: Mapping[TopicPartition, int]) -> Durable:
    """What a calm run makes of the log below these offsets."""
    log = {
        source: [(at, value) for at, value in entries if at < ends[source]]
        for source, entries in stream.log.items()
    }
    durable = Durable.of(Stream(stream.shape, log, dict(ends)))
    assert World(durable, random.Random(1), staging=RealStaging).run()
    return durable


def durable_of(stream: Stream) -> Durable:
    """Nothing is written yet."""
    durable = Durable.of(stream)
    durable.sink = Kept()
    return durable


def put_back(durable: Durable, rng: random.Random) -> None:
    """An operator has the log read again from an earlier place, as ``offsets reset`` does."""
    for source, state in durable.snapshot.partitions.items():
        to = rng.randrange(state.frontier + 1)
        around = ResetSurroundings({source: Watermarks(0, durable.end[source])}, durable.committed)
        asked = ResetRequest(ResetTo.OFFSET, (source,), {source: to})
        plan = plan_reset(durable.snapshot, around, asked)
        assert not plan.refusals
        targets = {}
        for name, mark in plan.snapshot.targets.items():
            moved = TargetWriter(MemoryStore(durable.sink)).reset(
                TargetName.parse(name), mark.moves or MarkMoves()
            )
            targets[name] = replace(mark, moves=None, hwms=moved.hwms, version=moved.version)
            table = durable.sink.tables[name]
            if mark.moves is not None:
                table.entries = [each for each in table.entries if each[2] < to]
                assert isinstance(durable.sink, Kept)
                durable.sink.keep(name, str(moved.version))
        durable.snapshot = replace(plan.snapshot, targets=targets)
        durable.committed = {source: to}


def one_partition(rng: random.Random, shape: Shape = SHAPE) -> Stream:
    """What a random stream has in its first partition."""
    stream, source = random_stream(rng, rng.choice((60, 200)), shape=shape), SOURCES[0]
    stream.log = {source: stream.log[source]}
    stream.end = {source: stream.end[source]}
    return stream


@pytest.fixture(autouse=True)
def at_any_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The messages tell no transaction: the end of each batch may be a boundary."""
    monkeypatch.setattr(cutting, "NO_END_S", 0.0)


def two_partitions(rng: random.Random, shape: Shape = SHAPE) -> Stream:
    """A random stream whose messages tell the source's time, but for some."""
    stream = random_stream(rng, rng.choice((60, 200)), shape=shape)
    for log in stream.log.values():
        for place, (offset, value) in enumerate(log):
            try:
                record = msgspec.json.decode(value)
            except msgspec.DecodeError:
                continue
            if isinstance(record, dict) and rng.random() < 0.9:
                record["es"] = 1_000_000 + 50 * place // len(log)
                log[place] = offset, msgspec.json.encode(record)
    return stream


def live(
    seed: int,
    shape: Shape = SHAPE,
    made: Callable[[random.Random, Shape], Stream] = one_partition,
) -> Counter[str]:
    """Several lives over one stream."""
    rng = random.Random(seed)
    stream = made(rng, shape)
    durable, counts = durable_of(stream), Counter[str]()
    faults = {
        "sink_fails": rng.choice((0, 0.4)),
        "disk_fails": rng.choice((0, 0.3)),
        "refusals": rng.choice((0, 0, 2)),
    }
    crashes = rng.randrange(4)
    for life in range(crashes + 1):
        rate = 0.01 if life < crashes else 0.0
        revokes = rng.choice((0, 4))
        more = {"crash_rate": rate, "revokes": revokes, "staging": RealStaging, **faults}
        world = CutWorld(stream, durable, rng, **more)
        ended = world.run()
        counts += world.counts
        if ended:
            break
    calm = upto(stream, stream.end).sink.tables
    found = {name: table.shown() for name, table in durable.sink.tables.items()}
    assert found == {name: table.shown() for name, table in calm.items()}
    return counts


@pytest.mark.parametrize("seed", range(20))
def test_a_cut_is_one_place_of_the_log(seed: int) -> None:
    """Also amid crashes, revokes, lost replies, full disks and quarantines."""
    live(seed)


@pytest.mark.parametrize("quiet_s", [0.0, 0.1])
def test_a_cut_of_several_partitions_is_one_place_in_each(
    quiet_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some are held until others have come to their time; some tables come in both."""
    monkeypatch.setattr(cutting, "NO_END_S", quiet_s)
    counts = Counter[str]()
    for seed in range(4):
        counts += live(seed, SHAPE, two_partitions)
        counts += live(seed, replace(SHAPE, split=0.3), two_partitions)
        counts += live(seed, Shape(lanes=True), two_partitions)
    assert counts["cuts"] > 8, counts
    assert counts["tables"] > 20, counts


def test_no_cut_goes_through_the_parts_of_a_message() -> None:
    """Those of several streams are mixed; some are begun anew."""
    counts = Counter[str]()
    for seed in range(5):
        counts += live(seed, replace(SHAPE, split=0.3))
    assert counts["cuts"] > 3, counts


def test_none_is_made_of_tables_that_hold_what_is_read_again() -> None:
    """The marks go back with the log, the rows of a keyed table don't. Former ones that have some
    of it are withdrawn."""
    counts = Counter[str]()
    for seed in range(40):
        rng = random.Random(seed)
        stream = one_partition(rng, Shape())
        durable = durable_of(stream)
        for _ in range(3):
            world = CutWorld(stream, durable, rng, crash_rate=0.01, staging=RealStaging)
            world.run()
            durable.save(world.logics[COMMITTER].snapshot())
            counts += world.counts
            put_back(durable, rng)
            states = durable.snapshot.partitions.items()
            again = {each: at for each, state in states if (at := state.withdraws) is not None}
            withdrawal = Cut(len(world.cuts), PIPELINE, WITHDRAWN, again, None, None, {}, {})
            for cut in world.cuts:
                above = any(at > durable.committed[each] for each, at in cut.positions.items())
                assert (withdrawn_by(cut, [withdrawal]) is not None) == above
                counts["withdrawn"] += above
        world = CutWorld(stream, durable, rng, staging=RealStaging)
        assert world.run()
        counts += world.counts
    assert counts["again"] > 5, counts
    assert counts["withdrawn"] > 5, counts
    assert counts["tables"] > 50, counts


def test_cuts_are_made_and_name_who_is_left_out() -> None:
    """Of many runs: cuts have tables, and leave out others by name."""
    counts = Counter[str]()
    for seed in range(100, 115):
        counts += live(seed)
    assert counts["cuts"] > 15, counts
    assert counts["left_out"] > 0
    assert counts["tables"] > counts["cuts"]
