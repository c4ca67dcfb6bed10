"""One thread drives the logic of all actors against small fakes of broker, sink, disk and clock.

A seeded scheduler picks who acts next; at any step everything volatile may be lost (``crash``).
What survives is what survives in earnest: the log, the broker's commit, the offset file, the sink.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from actors import effects as fx
from actors import messages as msg
from actors.committer import Begin, CommitterLogic
from actors.fetcher import FetcherLogic, FetcherSettings
from actors.mailbox import Tick
from actors.messages import WRITERS, Address
from actors.ports import Fenced, SinkUnavailable, StagedBatch, Straggler
from actors.processor import ProcessorLogic, ProcessorSettings
from changes.formats import FORMATS
from changes.model import FormatOptions, Mode
from changes.routing import Route, Router
from offsets.position import TopicPartition
from offsets.recovery import StartAt, Watermarks, start_position
from offsets.snapshot import Snapshot
from sparkwriter.writer import WriterLogic
from tests.simulation.sink import FakeSink
from tests.simulation.staging import PlainStaging, RealStaging, Staging
from tests.simulation.stream import SOURCES, Stream

PIPELINE = "p"
FETCHER = Address(PIPELINE, "fetcher")
COMMITTER = Address(PIPELINE, "committer")
SUPERVISOR = Address(PIPELINE, "supervisor")
SETTLING = Address(PIPELINE, "settling")
ROUTES = (
    Route(("*",), (), "lake.{database}.{table}", Mode.UPSERT, None),
    Route(("*",), (), "lake.log.all", Mode.APPEND, None),
)

SMALL = ProcessorSettings(
    batch_messages=5,
    batch_bytes=4000,
    batch_age_s=0.5,
    buffer_bytes=1500,
    memory_bytes=6000,
    writers=2,
    retry_base_s=0.1,
    retry_max_s=1.0,
    group="g@cluster",
)
"""Bounds that a stream of a few dozen messages reaches."""


class Crash(Exception):
    """The process is gone in the middle of what it did."""


@dataclass
class Durable:
    """What outlives a crash."""

    log: dict[TopicPartition, list[tuple[int, bytes]]]
    end: dict[TopicPartition, int]
    committed: dict[TopicPartition, int] = field(default_factory=dict)
    snapshot: Snapshot = field(default_factory=lambda: Snapshot(PIPELINE, "g"))
    sink: FakeSink = field(default_factory=FakeSink)


class World:
    """One life of the process: from start to crash or end. ``Durable`` goes from life to life."""

    def __init__(
        self,
        durable: Durable,
        rng: random.Random,
        *,
        shards: int = 2,
        mailbox_bytes: int = 2000,
        sink_fails: float = 0.0,
        disk_fails: float = 0.0,
        crash_rate: float = 0.0,
        revokes: int = 0,
        crash_at: int | None = None,
        settings: ProcessorSettings = SMALL,
        staging: type[RealStaging] | type[PlainStaging] = PlainStaging,
    ) -> None:
        """``crash_at``: the number of the effect before which the process ends."""
        self.durable = durable
        self.rng = rng
        self.now = 0.0
        self.mailbox_bytes = mailbox_bytes
        self.sink_fails = sink_fails
        self.disk_fails = disk_fails
        self.crash_rate = crash_rate
        self.crash_at = crash_at
        self.trace: list[str] = []
        self.heard: list[object] = []
        self.staged: dict[str, Staging] = {}
        self._files = 0
        self.steps = 0
        self._zombies: list[Callable[[], object]] = []
        self._staging: dict[Address, Staging] = {}
        self._paused = False
        self._position: dict[TopicPartition, int] = {}
        self._settled: list[object] = []
        self._ticket = 0
        self._started = False
        self._revokes = revokes
        self._wake: dict[Address, float] = {}
        self._held: set[Address] = set()
        self._waiting: dict[Address, bool] = {}
        self._answers: dict[Address, object] = {}
        self.logics: dict[Address, Any] = {}
        self._make_actors(shards, settings, staging)
        self.control: dict[Address, deque[object]] = {a: deque() for a in self.logics}
        self.data: dict[Address, deque[msg.RecordBatch]] = {a: deque() for a in self.logics}
        self.work: deque[object] = deque()
        self.writers = [WriterLogic() for _ in range(2)]
        self.control[COMMITTER].append(Begin())
        self.control[FETCHER].append(Tick())

    def _make_actors(
        self,
        shards: int,
        settings: ProcessorSettings,
        staging: type[RealStaging] | type[PlainStaging],
    ) -> None:
        make = FORMATS["canal-json"]
        router = Router(ROUTES)
        durable = self.durable
        self.logics[FETCHER] = FetcherLogic(
            PIPELINE, make(FormatOptions()), router, shards, FetcherSettings(max_messages=7)
        )
        self.logics[COMMITTER] = CommitterLogic(PIPELINE, durable.snapshot, 1.0, durable.end)
        for number in range(shards):
            me = Address(PIPELINE, "processor", number)
            self.logics[me] = ProcessorLogic(
                me, make(FormatOptions()), router, settings, "run", self.rng.random
            )
            self._staging[me] = staging(lambda: self.rng.random() < self.disk_fails)

    # --- the scheduler

    def run(self, limit: int = 20_000) -> bool:
        """Act until caught up; False when the process crashed on the way."""
        try:
            for _ in range(limit):
                if any(
                    isinstance(event, msg.CaughtUp | msg.PipelineFailed) for event in self.heard
                ):
                    return True
                self.act()
        except Crash:
            return False
        raise AssertionError(f"not caught up after {limit} steps: {self.trace[-40:]}")

    def act(self) -> None:
        """Let one randomly chosen actor handle one message, or let time pass."""
        ready = [a for a in self.logics if self._has_message(a)]
        if self.work:
            ready.append(WRITERS)
        if not ready:
            self.now = min(self._wake.values(), default=self.now + 1.0)
            return
        if self._zombies and self.rng.random() < 0.05:
            self._zombies.pop(self.rng.randrange(len(self._zombies)))()
        self._let_act(self.rng.choice(ready))

    def _let_act(self, chosen: Address) -> None:
        if chosen == WRITERS:
            self._write(self.work.popleft())
        else:
            self._feed(chosen, self._next(chosen))

    def _has_message(self, address: Address) -> bool:
        due = self._wake.get(address, float("inf")) <= self.now
        data = bool(self.data[address]) and address not in self._held
        return bool(self.control[address]) or due or data

    def _next(self, address: Address) -> object:
        if self.control[address]:
            return self.control[address].popleft()
        if self._wake.get(address, float("inf")) <= self.now:
            del self._wake[address]
            return Tick()
        batch = self.data[address].popleft()
        if self._waiting.pop(address, False):
            self.control[FETCHER].append(msg.RoomAgain(address))
        return batch

    def _feed(self, address: Address, message: object) -> None:
        self.now += 0.001
        self.trace.append(f"{self.now:.3f} {address} <- {type(message).__name__}")
        waiting: deque[object] = deque([message])
        while waiting:
            for effect in self.logics[address].handle(waiting.popleft(), self.now):
                self._maybe_crash(effect)
                answer = self._carry_out(address, effect)
                if answer is not None:
                    waiting.append(answer)

    def _maybe_crash(self, effect: object) -> None:
        self.steps += 1
        if self.steps == self.crash_at or (self.crash_rate and self.rng.random() < self.crash_rate):
            self.trace.append(f"{self.now:.3f} crash before {type(effect).__name__}")
            raise Crash

    # --- effects

    def _carry_out(self, me: Address, effect: object) -> object | None:
        match effect:
            case fx.Tell(to, message):
                self._tell(to, message)
            case fx.WakeAt(None):
                self._wake.pop(me, None)
            case fx.WakeAt(when):
                self._wake[me] = when
            case fx.Log():
                pass
            case fx.Reply(value):
                self._answers[me] = value
            case fx.Hold(held):
                (self._held.add if held else self._held.discard)(me)
            case fx.Offer(to, batch):
                return self._offer(to, batch)
            case fx.Consume(max_messages, timeout_s):
                polled = self._consume(max_messages)
                self.now += 0.0 if polled.batches else timeout_s
                return polled
            case fx.Pause():
                self._paused = True
            case fx.Resume():
                self._paused = False
            case fx.Commit(frontiers, _):
                self._commit(frontiers)
            case fx.ReleaseSources(sources, commit, settle):
                self._settle(sources, settle)
                self._release(sources, commit)
            case fx.Restart(sources):
                self._assign(sources)
            case fx.CloseSource():
                pass
            case fx.Stage():
                return self._stage(me, effect)
            case fx.RemoveStaged(paths):
                for path in paths:
                    self._remove(path)
            case fx.SaveSnapshot(snapshot):
                if self.rng.random() < self.disk_fails:
                    return msg.SaveFailed("disk full")
                self.durable.snapshot = snapshot
                states = snapshot.partitions.items()
                return msg.Saved({source: state.frontier for source, state in states})
            case _:
                raise TypeError(effect)
        return None

    def _commit(self, frontiers: Mapping[TopicPartition, int]) -> None:
        """A commit may be lost, or only its reply."""
        fate = self.rng.random()
        if fate < self.sink_fails / 2:
            return
        self.durable.committed.update(frontiers)
        if fate >= self.sink_fails:
            self.control[COMMITTER].append(msg.Confirmed(dict(frontiers)))

    def _tell(self, to: Address, message: object) -> None:
        if to == WRITERS:
            self.work.append(message)
        elif to == SUPERVISOR:
            self.heard.append(message)
        elif to == SETTLING:
            self._settled.append(message)
        else:
            self.control[to].append(message)

    def _offer(self, to: Address, batch: msg.RecordBatch) -> msg.Offered:
        used = sum(waiting.size for waiting in self.data[to])
        taken = not self.data[to] or used + batch.size <= self.mailbox_bytes
        if taken:
            self.data[to].append(batch)
        else:
            self._waiting[to] = True
        return msg.Offered(to, batch, taken)

    def _settle(self, sources: tuple[TopicPartition, ...], processors: tuple[Address, ...]) -> None:
        """Inside the poll: the others go on until they say so, or for as long as is waited."""
        self._ticket += 1
        for processor in processors:
            self.control[processor].append(msg.Settle(sources, self._ticket))
        wanted = {msg.Settled(processor, self._ticket) for processor in processors}
        for _ in range(self.rng.choice((0, 5, 200))):
            ready = [a for a in self.logics if a != FETCHER and self._has_message(a)]
            ready += [WRITERS] if self.work else []
            if not ready or wanted <= set(self._settled):
                return
            self._let_act(self.rng.choice(ready))

    def _release(self, sources: tuple[TopicPartition, ...], commit: bool) -> None:
        """An ask: the committer answers after all that was told it before."""
        while self.control[COMMITTER]:
            self._feed(COMMITTER, self.control[COMMITTER].popleft())
        self._feed(COMMITTER, msg.Release(sources))
        frontiers = self._answers.pop(COMMITTER, {})
        if commit and frontiers:
            self.durable.committed.update(frontiers)  # type: ignore[call-overload]
            self.control[COMMITTER].append(msg.Confirmed(dict(frontiers)))  # type: ignore

    def _consume(self, limit: int) -> msg.Polled:
        self._rebalance()
        if self._paused:
            return msg.Polled()
        batches = []
        for source, position in list(self._position.items()):
            found = [(o, v) for o, v in self.durable.log[source] if o >= position][:limit]
            if found:
                self._position[source] = found[-1][0] + 1
                offsets, values = [o for o, _ in found], [v for _, v in found]
                batches.append(msg.Fetched(source, offsets, list(values), self._position[source]))
        if not batches:
            self._position = {source: self.durable.end[source] for source in self._position}
            return msg.Polled((), dict(self._position))
        return msg.Polled(tuple(batches))

    def _rebalance(self) -> None:
        """Partitions are assigned at first, then now and then taken away and given back."""
        away = [source for source in SOURCES if source not in self._position]
        if not self._started:
            self._started = True
            self._assign(SOURCES)
        elif self._revokes > 0 and self.rng.random() < 0.3:
            self._revokes -= 1
            held = [s for s in SOURCES if s in self._position and self.rng.random() < 0.6]
            if held:
                self._revoke(tuple(held))
        elif away and (self.rng.random() < 0.5 or self._revokes == 0):
            self._assign(tuple(away))

    def _revoke(self, sources: tuple[TopicPartition, ...]) -> None:
        lost = self.rng.random() < 0.3
        self.trace.append(f"{self.now:.3f} {'lost' if lost else 'revoked'} {sources}")
        for source in sources:
            del self._position[source]
        self._feed(FETCHER, msg.Revoked(sources, lost))
        if self.rng.random() < 0.7:
            self._assign(sources)

    def _assign(self, sources: tuple[TopicPartition, ...]) -> None:
        logs = {source: Watermarks(0, self.durable.end[source]) for source in sources}
        commits = {source: self.durable.committed.get(source) for source in sources}
        for source in sources:
            start = start_position(
                source,
                recorded=self.durable.snapshot.partitions.get(source),
                committed=commits[source],
                log=logs[source],
                configured=StartAt.EARLIEST,
                configured_offset=None,
            )
            self._position[source] = start.offset
        starts = {source: self._position[source] for source in sources}
        self._feed(FETCHER, msg.Assigned(starts, logs, commits))

    def _stage(self, me: Address, request: fx.Stage) -> object:
        self._files += 1
        path = f"staged-{self._files}"
        staging = self._staging[me]
        answer = staging.stage(request, path)
        if isinstance(answer, msg.Staged):
            for piece in request.pieces:
                self._remove(piece)
            if answer.path is not None:
                self.staged[path] = staging
        return answer

    def _remove(self, path: str) -> None:
        staging = self.staged.pop(path, None)
        if staging is not None:
            del staging.files[path]

    # --- the writers

    def _write(self, request: Any) -> None:
        writer = self.rng.choice(self.writers)
        waiting: deque[object] = deque([request])
        self.trace.append(f"{self.now:.3f} writer <- {type(request).__name__}")
        while waiting:
            for effect in writer.handle(waiting.popleft(), self.now):
                self._maybe_crash(effect)
                answer = self._in_sink(effect)
                if answer is not None:
                    waiting.append(answer)

    def _in_sink(self, effect: object) -> object | None:
        match effect:
            case fx.OpenInSink(target):
                if self.rng.random() < self.sink_fails:
                    return msg.Failed(target, msg.FailureKind.RETRY, "away")
                return msg.Opened(target, self.durable.sink.state(str(target)))
            case fx.Publish(batch):
                return self._publish(batch)
            case _:
                return self._carry_out(WRITERS, effect)

    def _publish(self, batch: StagedBatch) -> object:
        """A failure may come before the publish, or after it: then only the reply is lost.

        Or the write goes on after its time is up: a zombie, which publishes later if it still can.
        """
        rows = None if batch.path is None else self.staged[batch.path].rows(batch.path)
        sink = self.durable.sink
        fate = self.rng.random()
        try:
            if fate < self.sink_fails / 3:
                raise SinkUnavailable("away")
            if fate < self.sink_fails * 2 / 3:
                self._zombies.append(sink.prepared(batch, rows))
                raise SinkUnavailable("timed out")
            state = sink.publish(batch, rows)
            if fate < self.sink_fails:
                raise SinkUnavailable("the reply is lost")
        except SinkUnavailable as error:
            return msg.Failed(batch.target, msg.FailureKind.RETRY, str(error))
        except Straggler as error:
            return msg.Failed(batch.target, msg.FailureKind.STRAGGLER, str(error))
        except Fenced as error:
            return msg.Failed(batch.target, msg.FailureKind.FENCED, str(error))
        return msg.Published(state, 0.0)


def live_through(
    stream: Stream,
    rng: random.Random,
    crashes: int,
    revokes: int,
    faults: Mapping[str, float],
    staging: type[RealStaging] | type[PlainStaging] = PlainStaging,
    worlds: list[World] | None = None,
) -> Durable:
    """Run the process over a stream, crashing up to so many times, until it has caught up.

    ``worlds`` collects the lives, for their traces.
    """
    durable = Durable(stream.log, stream.end)
    for life in range(crashes + 1):
        crash_rate = 0.01 if life < crashes else 0.0
        world = World(
            durable, rng, crash_rate=crash_rate, revokes=revokes, staging=staging, **faults
        )
        if worlds is not None:
            worlds.append(world)
        if world.run():
            failed = [e for e in world.heard if isinstance(e, msg.PipelineFailed)]
            assert not failed, failed
            if life == crashes or rng.random() < 0.5:
                break
    return durable
