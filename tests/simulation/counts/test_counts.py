"""Counts: the table of counts says what the log's records say, whatever fails on the way."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from actors import counts
from actors.contract import effects as fx
from actors.contract import messages as msg
from actors.contract.addresses import Address
from actors.counts import CountsLogic
from actors.runtime.mailbox import Tick
from changes.model.counts_table import READ, read_row, staged_rows
from changes.model.model import DdlPolicy, TargetName
from changes.routes.fold import key_bounds
from offsets.counts import HeldCounts, RowCounts, held
from offsets.position import TopicPartition
from tests.simulation.cast import SMALL
from tests.simulation.durable import PIPELINE, Durable
from tests.simulation.shape import Shape
from tests.simulation.staging import Content, RealStaging, StagedNets
from tests.simulation.stream import Stream, random_stream
from tests.simulation.world import World

COUNTS = Address(PIPELINE, "counts")
TABLE = TargetName("lake", "binlogd", "counts")
SHAPE = Shape(ddl=0.1, bad=0.1, quarantine=True, policy=DdlPolicy("keep", "follow"))


class _Own:
    """A staged file of counts."""

    def __init__(self, path: str, content: Content) -> None:
        self.files: dict[str, Any] = {path: content}

    def rows(self, path: str) -> Content:
        found: Content = self.files[path]
        return found


class CountsWorld(World):
    """Changes are counted, and folded all the time."""

    def __init__(self, durable: Durable, rng: random.Random, life: int, **more: Any) -> None:
        settings = replace(SMALL, counts=COUNTS)
        super().__init__(durable, rng, settings=settings, staging=RealStaging, **more)
        for logic in self.logics.values():
            if hasattr(logic, "_batches"):
                logic._batches._run_id = f"run{life}"
        self.logics[COUNTS] = CountsLogic(
            PIPELINE, "g@cluster", TABLE, 2, durable.snapshot.targets,
            lambda: 1_000_000 * (life + 1) + self.now, f"run{life}",
        )  # fmt: skip
        self.control[COUNTS], self.data[COUNTS] = (
            type(self.control[LETTERS])([Tick()]),
            self.data[LETTERS].copy(),
        )

    def _carry_out(self, me: Address, effect: object) -> object | None:
        if not isinstance(effect, fx.StageOwn):
            return super()._carry_out(me, effect)
        if self._disk_fails():
            return msg.OwnNotStaged("disk full")
        assert isinstance(effect.rows, tuple)
        table, schema = staged_rows(effect.rows)
        self._files += 1
        path = f"staged-{self._files}"
        self.staged[path] = _Own(path, StagedNets(table, schema.keys))  # type: ignore[assignment]
        return msg.OwnStaged(path, key_bounds(table, schema.keys))

    def fold_all(self) -> None:
        """Go on until the table of counts has all that marks carry."""
        logic = self.logics[COUNTS]
        self._sink.heal_all()
        for _ in range(20_000):
            told = any(self.control.values()) or self.work
            if not (told or logic._is_due or logic._is_busy or logic._reading.names):
                return
            self.act()
        raise AssertionError(f"not folded: {self.trace[-40:]}")


LETTERS = Address(PIPELINE, "dead-letters")


def timed(stream: Stream, rng: random.Random) -> dict[tuple[TopicPartition, int], int]:
    """Give each record a time of the source, not quite in order; its minute by place."""
    found: dict[tuple[TopicPartition, int], int] = {}
    for source, log in stream.log.items():
        for place, (offset, value) in enumerate(log):
            minute = 30_000_000 + offset // 9 + rng.choice((0, 0, 0, -1))
            try:
                record = msgspec.json.decode(value)
            except msgspec.DecodeError:
                continue
            if isinstance(record, dict) and rng.random() < 0.95:
                found[source, offset] = minute
                more = record | {"es": minute * 60_000 + rng.randrange(60_000)}
                log[place] = (offset, msgspec.json.encode(more))
    return found


Lane = tuple[str, TopicPartition]


def wanted(
    stream: Stream,
    minutes: dict[tuple[TopicPartition, int], int],
    found: dict[Lane, HeldCounts],
    seen: Counter[str],
) -> dict[Lane, dict[int, RowCounts]]:
    """By target and lane, from what the stream's maker lists of its changes. Those of offsets that
    the table does not name as counted are left out, and noted."""
    letters = Counter[tuple[str, TopicPartition, int, str]]()
    for source, entries in stream.changelog.items():
        due = {each.offset: each.targets for each in stream.due[source]}
        for letter, _, offset, _ in entries:
            minute = minutes.get((source, offset), 0)
            for target in {*due.get(offset, ()), "log.log.all"}:
                held_ = found.get((target, source))
                if held_ is None or not held_.has(offset):
                    seen["uncounted"] += held_ is not None or not stream.shape.several
                else:
                    letters[target, source, minute, letter] += 1
    made: dict[Lane, dict[int, RowCounts]] = {}
    for target, source, minute, _ in letters:
        counts = (letters[target, source, minute, letter] for letter in "IUD")
        made.setdefault((target, source), {})[minute] = RowCounts(*counts)
    return made


def in_table(durable: Durable) -> Iterator[tuple[Lane, HeldCounts]]:
    """What the table of counts says."""
    table = durable.sink.tables[str(TABLE)]
    rows = [read_row([row[name] for name in READ.split(", ")]) for row in table.shown().values()]
    for key in {(row.target, row.lane) for row in rows}:
        yield key, held(row for row in rows if (row.target, row.lane) == key)


def live(seed: int, shape: Shape = SHAPE) -> Counter[str]:
    """Several lives over one stream; the table says the truth at the end."""
    rng = random.Random(seed)
    stream = random_stream(rng, rng.choice((60, 200)), shape=shape)
    minutes = timed(stream, rng)
    durable = Durable.of(stream)
    faults = {
        "sink_fails": rng.choice((0, 0.4)),
        "disk_fails": rng.choice((0, 0.3)),
        "refusals": rng.choice((0, 0, 2)),
    }
    crashes = rng.randrange(6)
    for life in range(crashes + 1):
        rate, revokes = 0.01 if life < crashes else 0.0, rng.choice((0, 4))
        world = CountsWorld(durable, rng, life, crash_rate=rate, revokes=revokes, **faults)
        if world.run():
            world.crash_rate = 0.0
            world.fold_all()
            break
    return compared(durable, stream, minutes)


def compared(
    durable: Durable, stream: Stream, minutes: dict[tuple[TopicPartition, int], int]
) -> Counter[str]:
    """The table against the stream."""
    found, seen = dict(in_table(durable)), Counter[str]()
    if stream.shape.several:  # a message is of several tables: only the changelog lists all of it
        found = {key: each for key, each in found.items() if key[0] == "log.log.all"}
    told = wanted(stream, minutes, found, seen)
    assert {key: dict(each.minutes()) for key, each in found.items()} == told
    assert not any(each.doubtful for each in found.values())
    assert not seen["uncounted"] or stream.shape.ddl
    seen["counted"] += sum(sum(map(sum, each.values())) for each in told.values())
    return seen


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """A simulated life lasts some seconds."""
    monkeypatch.setattr(counts, "FOLD_EVERY_S", 0.3)


@pytest.mark.parametrize("seed", range(20))
def test_the_table_counts_each_change_once(seed: int) -> None:
    """Amid crashes, revokes, lost replies, full disks and quarantines."""
    live(seed)


@pytest.mark.parametrize(
    "shape",
    [
        replace(SHAPE, several=0.3), replace(SHAPE, split=0.3), replace(SHAPE, away=True),
        replace(SHAPE, lanes=True, ddl=0.0),
    ],
    ids=["several entries", "parts", "a sink away", "two lanes"],
)  # fmt: skip
def test_so_it_is_of_other_logs(shape: Shape) -> None:
    """Messages of several entries, in parts; a sink that comes and goes; tables of two lanes."""
    seen = Counter[str]()
    for seed in range(6):
        seen += live(seed, shape)
    assert seen["counted"] > 200, seen
    assert seen["uncounted"] < seen["counted"] / 20, seen


@pytest.mark.long
@pytest.mark.parametrize("seed", range(20, 220, 10))
def test_so_it_is_of_many_streams(seed: int) -> None:
    """Ten more each."""
    for more in range(10):
        live(seed + more)
