"""One thread drives the logic of all actors against small fakes of broker, sink, disk and clock.

A seeded scheduler picks who acts next; at any step everything volatile may be lost (``crash``).
What survives is what survives in earnest: the log, the broker's commit, the offset file, the sink,
spills and dead letters (``durable``).
"""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Mapping
from typing import Any

from actors.committer.rule import Begin
from actors.contract import effects as fx
from actors.contract import messages as msg
from actors.contract.addresses import WRITERS, Address
from actors.runtime.mailbox import Tick
from actors.target.settings import ProcessorSettings
from actors.writer import WriterLogic
from offsets.position import TopicPartition
from tests.simulation.cast import SMALL, Cast
from tests.simulation.durable import PIPELINE, Durable
from tests.simulation.partitions import COMMITTER, FETCHER, Partitions
from tests.simulation.schemas.registry import SimulatedRegistry
from tests.simulation.seen import note
from tests.simulation.staging import PlainStaging, RealStaging, Staging
from tests.simulation.stream import SOURCES
from tests.simulation.writers import Writers

SUPERVISOR = Address(PIPELINE, "supervisor")
SETTLING = Address(PIPELINE, "settling")


class Crash(Exception):
    """The process is gone in the middle of what it did."""


class World(Partitions):
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
        refusals: float = 0,
        crash_rate: float = 0.0,
        revokes: int = 0,
        crash_at: int | None = None,
        settings: ProcessorSettings = SMALL,
        staging: type[RealStaging] | type[PlainStaging] = PlainStaging,
    ) -> None:
        """``refusals``: how often the sink refuses a target, if its stream has a quarantine.

        ``crash_at``: the number of the effect before which the process ends.
        """
        super().__init__(durable, rng, revokes)
        self.mailbox_bytes = mailbox_bytes
        self.sink_fails = sink_fails
        self.disk_fails = disk_fails
        self.crash_rate = crash_rate
        self.crash_at = crash_at
        self.operated = True
        """Whether somebody looks after targets in quarantine."""
        self.heard: list[object] = []
        self.seen: Counter[str] = Counter()
        """What happened how often, by the names of effects, statements, failures."""
        self.staged: dict[str, Staging] = {}
        self._files = 0
        self.steps = 0
        self._settled: list[object] = []
        self._ticket = 0
        self._wake: dict[Address, float] = {}
        self._held: set[Address] = set()
        self._waiting: dict[Address, bool] = {}
        self._answers: dict[Address, object] = {}
        refused = int(refusals) if durable.shape.quarantine else 0
        self._sink = Writers(durable.sink, rng, sink_fails, refused)
        of = durable.shape.registry
        self.registry = None if of is None else SimulatedRegistry(of, rng)
        cast = Cast(
            durable, rng.random, self._disk_fails, shards, settings, staging, self._room_again
        )
        self.logics, self._staging, self._spills = cast.logics, cast.staging, cast.spills
        self.control: dict[Address, deque[object]] = {a: deque() for a in self.logics}
        self.data: dict[Address, deque[msg.RecordBatch]] = {a: deque() for a in self.logics}
        self.work: deque[object] = deque()
        self.writers = [WriterLogic() for _ in range(2)]
        self.control[COMMITTER].append(Begin())
        self.control[FETCHER].append(Tick())

    def _room_again(self, processor: Address) -> None:
        self.control[processor].append(Tick())

    def _disk_fails(self) -> bool:
        return self.rng.random() < self.disk_fails

    # --- the scheduler

    def run(self, limit: int = 40_000) -> bool:
        """Act until all is applied; False when the process crashed on the way."""
        try:
            for _ in range(limit):
                if self.ended or any(isinstance(e, msg.PipelineFailed) for e in self.heard):
                    return True
                self.act()
        except Crash:
            return False
        raise AssertionError(f"not caught up after {limit} steps: {self.trace[-40:]}")

    @property
    def ended(self) -> bool:
        """Whether it has caught up and, if somebody looks after that, nothing is in a spill."""
        caught_up = any(isinstance(event, msg.CaughtUp) for event in self.heard)
        return caught_up and not (self.operated and self._quarantined())

    def _quarantined(self) -> list[tuple[Address, str]]:
        return [
            (address, name)
            for address, logic in self.logics.items()
            if address.role == "processor"
            for name, buffer in logic._buffers.items()
            if buffer.quarantine is not None
        ]

    def act(self) -> None:
        """Let one randomly chosen actor handle one message, or let time pass."""
        ready = [a for a in self.logics if self._has_message(a)]
        if self.work:
            ready.append(WRITERS)
        if self.rng.random() < 0.05:
            self._sink.land()
            if self.operated:
                self._operate()
            if self.durable.shape.away and self.rng.random() < 0.1:
                self._sink.come_and_go()
        if self._ask_registry(idle=not ready):
            return
        if not ready:
            self.now = min(self._wake.values(), default=self.now + 1.0)
            return
        self._let_act(self.rng.choice(ready))

    def _ask_registry(self, *, idle: bool) -> bool:
        """Let the registry's keeper act, now and then, and where only it is waited for."""
        registry = self.registry
        if registry is None or not (idle or self.rng.random() < 0.1):
            return False
        wakes = min(self._wake.values(), default=float("inf"))
        if idle and registry.next_at > self.now:
            if wakes < registry.next_at:
                return False
            self.now = min(registry.next_at, self.now + 1.0)
        for to, message in registry.act(self.now):
            self.control[to].append(message)
            note(self.seen, message)
        return idle

    def _operate(self) -> None:
        """Somebody makes a target fit again, or has one released; maybe too early."""
        quarantined = self._quarantined()
        if quarantined:
            if self.rng.random() < 0.5:
                self._sink.heal()
            address, name = self.rng.choice(quarantined)
            self.control[address].append(msg.RetryTarget(name))

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
            self.control[FETCHER].append(msg.RoomAvailable(address))
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
                note(self.seen, message)
            case fx.WakeAt(None):
                self._wake.pop(me, None)
            case fx.WakeAt(when):
                self._wake[me] = when
            case fx.Log():
                note(self.seen, effect)
            case fx.Reply(value):
                self._answers[me] = value
            case fx.Hold(held):
                (self._held.add if held else self._held.discard)(me)
            case fx.Offer(to, batch):
                return self._offer(to, batch)
            case fx.Stage():
                return self._stage(me, effect)
            case fx.RemoveStaged(paths):
                for path in paths:
                    self._remove(path)
            case fx.Spill() | fx.ReadSpill() | fx.EndSpill():
                note(self.seen, effect)
                return self._spills[me](effect)
            case fx.KeepDeadLetter(letter):
                note(self.seen, effect)
                return self._keep(letter)
            case fx.CountDeadLetters():
                return msg.DeadLettersCounted(0)
            case fx.SaveSnapshot(snapshot):
                if self._disk_fails():
                    return msg.SaveFailed("disk full")
                self.durable.save(snapshot)
                states = snapshot.partitions.items()
                return msg.Saved({source: state.frontier for source, state in states})
            case _:
                return self._in_source(effect)
        return None

    def _in_source(self, effect: object) -> object | None:
        """What the fetcher asks of its consumer."""
        match effect:
            case fx.Consume(max_messages, timeout_s):
                polled = self._consume(max_messages)
                self.now += 0.0 if polled.batches else timeout_s
                return polled
            case fx.Pause(sources):
                self._paused.update(SOURCES if sources is None else sources)
            case fx.Resume(sources):
                self._paused.difference_update(SOURCES if sources is None else sources)
            case fx.WantSchemas(identities):
                assert self.registry is not None
                note(self.seen, effect)
                kept, state = self.registry.want(FETCHER, identities, self.now)
                self.control[FETCHER].extend(message for _, message in state)
                return msg.SchemasKept(kept)
            case fx.Commit(frontiers, _):
                self._commit(frontiers)
            case fx.ReleaseSources(sources, commit, settle):
                self._settle(sources, settle)
                self._release(sources, commit)
            case fx.Restart(sources):
                self._assign(sources)
            case fx.CloseSource():
                pass
            case _:
                raise TypeError(effect)
        return None

    def _commit(self, frontiers: Mapping[TopicPartition, int]) -> None:
        """A commit may be lost, or only its reply."""
        fate = self.rng.random()
        if fate < self.sink_fails / 2:
            return
        self.durable.commit(frontiers)
        if fate >= self.sink_fails:
            self.control[COMMITTER].append(msg.Confirmed(dict(frontiers)))

    def _keep(self, letter: msg.DeadLetter) -> object:
        """A store that fails may have it all the same."""
        fails = self._disk_fails()
        if not (fails and self.rng.random() < 0.5):
            target = None if letter.target is None else str(letter.target)
            self.durable.letters.append((letter.source, letter.offset, target))
        return msg.DeadLetterNotKept("disk full") if fails else msg.DeadLetterKept(letter)

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
        frontiers: Any = self._answers.pop(COMMITTER, {})
        if commit and frontiers:
            self.durable.commit(frontiers)
            self.control[COMMITTER].append(msg.Confirmed(dict(frontiers)))

    # --- staged files and the writers

    def _stage(self, me: Address, request: fx.Stage) -> object:
        self._files += 1
        path = f"staged-{self._files}"
        staging = self._staging[me]
        answer = staging.stage(request, path)
        if isinstance(answer, msg.Staged):
            for piece in request.earlier_files:
                self._remove(piece)
            if answer.path is not None:
                self.staged[path] = staging
        return answer

    def _remove(self, path: str) -> None:
        staging = self.staged.pop(path, None)
        if staging is not None:
            del staging.files[path]

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
                return self._sink.open(target)
            case fx.Publish(batch):
                path = batch.path
                return self._sink.publish(batch, path and self.staged[path].rows(path))
            case _:
                return self._carry_out(WRITERS, effect)
