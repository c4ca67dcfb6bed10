"""Tables of a database go from cut to cut at once: they always show one place of the log."""

from __future__ import annotations

import copy
import random
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from actors.committer.cutting import CutWatch
from actors.contract import effects as fx
from actors.contract import messages as msg
from actors.contract.writes import TargetState
from actors.fetcher import cutting
from actors.fetcher.cutting import Cutting
from actors.runtime.mailbox import Tick
from actors.target.limits import AtCuts
from actors.together import Gathering, Together
from offsets.position import TopicPartition
from tests.simulation import cast
from tests.simulation.cuts.test_cuts import (
    CUTS,
    SHAPE,
    one_partition,
    shown,
    two_partitions,
    upto,
)
from tests.simulation.durable import PIPELINE, Durable
from tests.simulation.partitions import COMMITTER, FETCHER
from tests.simulation.shape import PLAIN, Shape
from tests.simulation.sink import FakeSink
from tests.simulation.staging import RealStaging
from tests.simulation.stream import Stream
from tests.simulation.world import World

FOR_EVER = 1e9


class Gatherer:
    """Who makes cuts, as far as it gathers writes."""

    def __init__(self, patience_s: float) -> None:
        self.gathering = Gathering(CUTS, Together(frozenset({"lake"}), patience_s))
        self.reached: list[msg.CutReached] = []

    def handle(self, message: object, now: float) -> Sequence[object]:
        match message:
            case msg.WriteBatch():
                return self.gathering.take(message, now)
            case msg.CutAwaits():
                return self.gathering.awaits(message, now)
            case msg.Forget():
                return self.gathering.forget(message)
            case msg.NotTogether():
                return self.gathering.not_together(message, now)
            case msg.CutReached():
                self.gathering.over()
                self.reached.append(message)
                return []
            case Tick():
                return self.gathering.due(now)
        raise TypeError(message)


class Transactional(FakeSink):
    """Several of its tables can change at once, or none of them."""

    def together(self, writes: Sequence[msg.WriteBatch], world: TogetherWorld) -> list[TargetState]:
        kept = copy.deepcopy((self.tables, self.buried, self.freed, self.versions))
        try:
            batches = [write.batch for write in writes]
            return [
                self.publish(each, each.path and world.staged[each.path].rows(each.path))
                for each in batches
            ]
        except Exception:
            self.tables, self.buried, self.freed, self.versions = kept
            raise


class TogetherWorld(World):
    """What the database shows is held against a calm run over the log up to a boundary."""

    def __init__(
        self,
        stream: Stream,
        durable: Durable,
        rng: random.Random,
        patience_s: float,
        buffer_bytes: int = 1 << 20,
        **more: Any,
    ) -> None:
        settings = replace(cast.SMALL, together=frozenset({"lake"}), buffer_bytes=buffer_bytes)
        super().__init__(durable, rng, settings=settings, **more)
        self._stream, self.counts = stream, Counter[str]()
        fetcher, committer = self.logics[FETCHER], self.logics[COMMITTER]
        every_s = rng.choice((0.02, 0.5))
        fetcher._cutting = Cutting(PIPELINE, fetcher._sorter._format, fetcher._parts, every_s)
        committer._cut = CutWatch(PIPELINE, patience_s * 2, together=True)
        self.gatherer = self.logics[CUTS] = Gatherer(patience_s)
        self.control[CUTS], self.data[CUTS] = deque(), deque()
        self.asked: list[dict[TopicPartition, int]] = []

    def _tell(self, to: Any, message: object) -> None:
        if isinstance(message, msg.CutAsked):
            self.asked.append(dict(message.positions))
        self.counts["soon"] += isinstance(message, msg.CutSoon)
        super()._tell(to, message)

    def shows(self) -> dict[str, Any]:
        """What a reader of the database finds."""
        tables = self.durable.sink.tables.items()
        return {n: shown(t) for n, t in tables if n.startswith("lake.") and shown(t) != ({}, [])}

    def at(self, positions: dict[TopicPartition, int]) -> dict[str, Any]:
        tables = upto(self._stream, positions).sink.tables.items()
        return {n: shown(t) for n, t in tables if n.startswith("lake.") and shown(t) != ({}, [])}

    def _in_sink(self, effect: object) -> object | None:
        if isinstance(effect, msg.WriteTogether):
            return self._together(effect.writes)
        answer = super()._in_sink(effect)
        if isinstance(effect, fx.Publish) and effect.batch.target.sink == "lake":
            self.counts["alone"] += 1
            self.changed()
        return answer

    def _together(self, writes: tuple[msg.WriteBatch, ...]) -> object:
        fate, one = self.rng.random() * 3, self.rng.choice(writes).batch.target
        failed = msg.Failed(one, msg.FailureKind.RETRY, "away")
        if fate < self.sink_fails:
            return msg.NotTogether(writes, failed, "away", away=fate < self.sink_fails / 2)
        sink = self.durable.sink
        assert isinstance(sink, Transactional)
        states = sink.together(writes, self)
        self.counts["together"] += 1
        self.changed()
        if fate < self.sink_fails * 2:
            self.counts["lost"] += 1
            return msg.NotTogether(writes, failed, "the reply is lost")
        return msg.PublishedTogether(tuple(msg.Published(state, 0.0) for state in states))

    def changed(self) -> None:
        """Readers may look now."""


class StrictWorld(TogetherWorld):
    """Nobody is left behind: each change is from one boundary to another."""

    def changed(self) -> None:
        here = self.shows()
        if not self.asked:
            return  # it lands late, in a life that has asked for nothing yet
        assert here == self.at(self.asked[-1]), (self.asked[-1], self.trace[-30:])
        self.counts["cuts"] += 1


def live(
    seed: int,
    world: type[TogetherWorld],
    patience_s: float,
    shape: Shape = PLAIN,
    **more: Any,
) -> Counter[str]:
    """Several lives over one stream; in the end everything is there."""
    rng = random.Random(seed)
    made = two_partitions if rng.random() < 0.3 else one_partition
    stream = made(rng, shape)
    durable, counts = Durable.of(stream), Counter[str]()
    durable.sink = Transactional()
    crashes = rng.randrange(4)
    for life in range(crashes + 1):
        more["crash_rate"] = 0.01 if life < crashes else 0.0
        one = world(stream, durable, rng, patience_s, staging=RealStaging, **more)
        ended = one.run()
        counts += one.counts
        if ended:
            break
    assert known(durable) == known(upto(stream, stream.end))
    return counts


def known(durable: Durable) -> dict[str, Any]:
    """What tables show. A column that a row never had and one that is null are the same: which it
    is depends on the rows that were written with it."""
    return {
        name: {
            key: {column: value for column, value in row.items() if value is not None}
            for key, row in table.shown().items()
        }
        for name, table in durable.sink.tables.items()
    }


@pytest.fixture(autouse=True)
def roomy(monkeypatch: pytest.MonkeyPatch) -> None:
    """All that comes between two cuts can be held; the end of each batch may be a boundary."""
    monkeypatch.setattr(cast, "SMALL_MEMORY", 1 << 20)
    monkeypatch.setattr(cutting, "NO_END_S", 0.0)


@pytest.mark.parametrize("seed", range(20))
def test_readers_see_nothing_but_cuts(seed: int) -> None:
    """Writes fail, replies are lost, the process is killed, partitions go and come."""
    live(seed, StrictWorld, FOR_EVER, sink_fails=seed % 3 / 5, revokes=seed % 2 * 4)


def test_they_see_many_and_of_several_tables_at_once() -> None:
    """So the runs above can fail."""
    counts = Counter[str]()
    for seed in range(100, 110):
        counts += live(seed, StrictWorld, FOR_EVER, sink_fails=0.6)
    assert counts["together"] > 10, counts
    assert counts["lost"] > 0, counts


def test_tables_that_are_written_by_themselves_show_what_was_at_no_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The control: without gathering, readers see half a cut."""
    monkeypatch.setattr(AtCuts, "gatherer", lambda self, buffer, batch: (None, []))
    torn = 0
    for seed in range(5):
        try:
            live(seed, StrictWorld, FOR_EVER)
        except AssertionError:
            torn += 1
    assert torn > 2


@pytest.mark.parametrize("patience_s", [0.3, 3.0])
def test_nobody_waits_for_ever(patience_s: float) -> None:
    """Targets are refused and quarantined, statements rename them, disks are full: what is written
    by itself is right all the same, and all is written in the end."""
    counts = Counter[str]()
    for seed in range(12):
        faults = {"sink_fails": seed % 3 / 5, "disk_fails": seed % 5 / 10, "refusals": seed % 4}
        counts += live(seed, TogetherWorld, patience_s, SHAPE, revokes=seed % 2 * 4, **faults)
    assert counts["together"] > 5, counts
    assert counts["alone"] > 5, counts


def test_more_than_can_be_held_is_written_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory and a write's size are small: cuts come sooner, or what is too much goes ahead."""
    monkeypatch.setattr(cast, "SMALL_MEMORY", 3000)
    counts = Counter[str]()
    for seed in range(6):
        counts += live(seed, TogetherWorld, 3.0, sink_fails=0.1, buffer_bytes=500)
    assert counts["soon"] > 3, counts
    assert counts["together"] > 3, counts
