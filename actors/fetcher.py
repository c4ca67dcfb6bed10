"""The fetcher's rule: glance at each message, split batches by target, never block.

Where a processor's mailbox is full its share is parked and nothing is polled until there is room;
where that takes long all partitions are paused and polling goes on, so the group keeps this
member. ``Dispatched`` always precedes the data it speaks of, so that no acknowledgement can
overtake its registration.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from actors import effects as fx
from actors import messages as msg
from actors.figures import FetcherFigures, Figures
from actors.mailbox import Tick
from actors.messages import MESSAGE_OVERHEAD, Address
from actors.reassembly import Reassembly, SequenceGap
from actors.several import by_target
from changes.formats.base import Format, Several
from changes.model import BadMessage, Ddl, Kind, TableName
from changes.routing import RouteConflict, Router, TargetRoute, shard_of
from offsets.log_epochs import EpochSpan
from offsets.parts import MissingPart, TooLarge
from offsets.position import TopicPartition
from offsets.recovery import Watermarks


@dataclass(frozen=True, slots=True)
class FetcherSettings:
    """How the source is polled.

    ``poll_timeout_s`` is how long a poll waits for ``max_messages``: the latency of a quiet
    source. While a share waits for room in a mailbox nothing is polled; only when that has taken
    ``patience_s`` are the partitions paused, for a pause throws away what the client has fetched
    ahead (a third of all traffic under load, measured). While paused, polls return nothing and
    only keep the membership: every ``paused_poll_s`` is plenty, and room in a mailbox wakes the
    fetcher by itself.
    """

    max_messages: int = 5000
    poll_timeout_s: float = 0.1
    patience_s: float = 1.0
    paused_poll_s: float = 0.25
    part_bytes: int = 64 << 20
    """Bytes of messages that lack parts, at most. Less: a large row of several shards at once
    stops the pipeline. More only costs memory."""
    dead_letters: bool = False
    """Messages that can't be looked at are stored and passed over, instead of ending it all."""


@dataclass(frozen=True, slots=True)
class _Reading:
    """An assigned partition: its epoch and the log as it was when that began."""

    epoch: int
    log: Watermarks
    start: int


@dataclass(slots=True)
class _Slot:
    """What one target gets of one fetched batch, in order."""

    route: TargetRoute
    offsets: list[int] = field(default_factory=list)
    values: list[bytes] = field(default_factory=list)
    ddl: bool = False

    def share(self) -> msg.Share:
        size = sum(map(len, self.values)) + MESSAGE_OVERHEAD * len(self.values)
        return msg.Share(self.route, self.offsets, self.values, size, self.ddl)


class _NotFollowed(Exception):
    """A statement that concerns a whole database: good, and nothing to pass over."""


@dataclass(frozen=True, slots=True)
class _Problem:
    """Why a message can't be sent on. ``lasting``: not the message is wrong, but what it asks."""

    reason: str
    lasting: bool


def _behind(fetched: msg.Fetched, place: int) -> msg.Fetched | None:
    """What follows a place of a fetched batch, None where that was the last."""
    if place + 1 == len(fetched.offsets):
        return None
    offsets, values = fetched.offsets[place + 1 :], fetched.values[place + 1 :]
    return msg.Fetched(fetched.source, offsets, values, fetched.next_offset, fetched.time_ms)


class FetcherLogic:
    """One per pipeline, sole user of the consumer. Deterministic; see ``handle``."""

    def __init__(
        self,
        pipeline: str,
        format_: Format,
        router: Router,
        shards: int,
        settings: FetcherSettings,
    ) -> None:
        self._pipeline = pipeline
        self._format = format_
        self._router = router
        self._settings = settings
        self._parts = Reassembly(format_, settings.part_bytes)
        self._committer = Address(pipeline, "committer")
        self._supervisor = Address(pipeline, "supervisor")
        self._dead_letters = Address(pipeline, "dead-letters")
        self._processors = [Address(pipeline, "processor", i) for i in range(shards)]
        self._reading: dict[TopicPartition, _Reading] = {}
        self._positions: dict[TopicPartition, int] = {}
        self._epoch = 0
        self._parked: dict[Address, deque[msg.RecordBatch]] = {p: deque() for p in self._processors}
        self._sent = dict.fromkeys(self._processors, 0)
        self._asked: set[Address] = set()
        self._refused: set[Address] = set()
        self._stopped = False
        self._delivering = False
        self._closed = False
        self._paused = False
        self._blocked_at = 0.0
        self._was_assigned = False
        self._ends: dict[TopicPartition, int] = {}
        self._unreachable_since: float | None = None
        self._messages = self._dropped = 0

    def handle(self, message: object, now: float) -> list[object]:
        """React to one message. ``now`` is in monotonic seconds."""
        match message:
            case Tick():
                return self._poll(now)
            case msg.Polled():
                return self._polled(message, now)
            case msg.Offered():
                return self._offered(message, now)
            case msg.RoomAgain(to):
                return self._offer_parked(to)
            case msg.Assigned():
                return self._assigned(message)
            case msg.Revoked(sources, lost):
                return self._revoked(sources, lost)
            case msg.ReadAgain(epochs):
                return self._read_again(epochs)
            case msg.CommitFrontiers():
                return self._commit(message)
            case msg.StopFetching():
                return self._stop()
            case Figures():
                return [fx.Reply(self._figures(now))]
            case _:
                raise TypeError(f"the fetcher does not know {message!r}")

    # --- polling

    @property
    def _blocked(self) -> bool:
        return self._stopped or any(self._parked.values())

    def _poll(self, now: float) -> list[object]:
        settings = self._settings
        if self._closed:
            return []
        if self._blocked:
            if not self._paused and now < self._blocked_at + settings.patience_s:
                return [fx.WakeAt(self._blocked_at + settings.patience_s)]
            keep_alive = fx.Consume(settings.max_messages, 0.0)
            return [*self._pause(), keep_alive, fx.WakeAt(now + settings.paused_poll_s)]
        poll = fx.Consume(settings.max_messages, settings.poll_timeout_s)
        return [poll, fx.WakeAt(now)]

    def _polled(self, polled: msg.Polled, now: float) -> list[object]:
        out: list[object] = []
        if polled.state is not None:
            self._hear(polled.state, now)
        for fetched in polled.batches:
            if fetched.source in self._reading and not self._stopped:
                out += self._take(fetched)
        if self._stopped:
            # The consumer has run ahead of what was dispatched: its position counts no more, or
            # the frontier would pass a bad message that was never sent on.
            return out
        for source, position in polled.positions.items():
            if source in self._reading and position > self._positions[source]:
                sent = self._dispatched(source, position, {})
                out += self._parts.moved(source, position).completed([sent])
        if polled.error is not None:
            out += self._fail(polled.error)
        return out

    def _take(self, fetched: msg.Fetched) -> list[object]:
        """Put parts together and route what is whole."""
        out: list[object] = []
        before = self._parts.repeated
        try:
            for stretch in self._parts.stretches(fetched):
                effects: list[object] = []
                rest: msg.Fetched | None = stretch.fetched
                while rest is not None and not self._stopped:
                    more, rest = self._route(rest)
                    effects += more
                out += stretch.completed(effects)
                if self._stopped:
                    break
        except (MissingPart, TooLarge, SequenceGap) as missing:
            out += self._fail(str(missing))
        if again := self._parts.repeated - before:
            fields = {"source": str(fetched.source), "messages": again}
            out.append(fx.Log("info", "sent_again", fields))
        return out

    # --- routing

    def _route(self, fetched: msg.Fetched) -> tuple[list[object], msg.Fetched | None]:
        """Split a batch by target: first ``Dispatched``, then a share for each processor.

        Gives what is left behind a message that became a dead letter, too.
        """
        shares, good, problem = self._split(fetched)
        source = fetched.source
        next_offset = fetched.next_offset if problem is None else fetched.offsets[good]
        lanes: dict[str, tuple[int, int]] = {}
        by_shard: dict[Address, list[msg.Share]] = {}
        for share in shares:
            target = str(share.route.name)
            first = lanes[target][0] if target in lanes else share.offsets[0]
            lanes[target] = (first, share.offsets[-1])
            shard = self._processors[shard_of(target, len(self._processors))]
            by_shard.setdefault(shard, []).append(share)
        self._messages += good
        out: list[object] = [
            self._dispatched(source, next_offset, lanes, fetched.time_ms, fetched.epochs)
        ]
        reading = self._reading[source]
        for to, mine in by_shard.items():
            size = sum(share.size for share in mine)
            batch = msg.RecordBatch(
                reading.epoch, source, tuple(mine), size, reading.log, reading.start
            )
            if self._parked[to] or to in self._asked:
                # One offer at a time: were the next one smaller, it might find room before this
                # one, and overtake it in its lanes.
                self._parked[to].append(batch)
            else:
                out.append(self._offer(to, batch))
        if problem is None:
            return out, None
        if problem.lasting or not self._settings.dead_letters:
            reason = f"{source} offset {fetched.offsets[good]}: {problem.reason}"
            return out + self._fail(reason), None
        return out + self._dead_letter(fetched, good, problem.reason), _behind(fetched, good)

    def _dead_letter(self, fetched: msg.Fetched, place: int, reason: str) -> list[object]:
        """One message to be stored: pending in a lane of its own until it is."""
        source, offset = fetched.source, fetched.offsets[place]
        after = fetched.offsets[place + 1] if place + 1 < len(fetched.offsets) else None
        next_offset = fetched.next_offset if after is None else after
        epoch = self._reading[source].epoch
        letter = msg.DeadLetter(source, epoch, offset, fetched.values[place], reason)
        self._messages += 1
        return [
            self._dispatched(source, next_offset, {msg.DEAD_LETTERS: (offset, offset)}),
            fx.Tell(self._dead_letters, letter),
        ]

    def _split(self, fetched: msg.Fetched) -> tuple[list[msg.Share], int, _Problem | None]:
        """The shares in lane order, how many messages were good, what is wrong with the next."""
        rows, nothing = Kind.ROWS, Kind.NOTHING
        done: list[_Slot] = []
        by_target: dict[str, _Slot] = {}
        by_table: dict[TableName, tuple[_Slot, ...]] = {}
        good = 0
        problem: _Problem | None = None
        try:
            heads = self._format.heads(fetched.values)
            for offset, value, (kind, table) in zip(
                fetched.offsets, fetched.values, heads, strict=True
            ):
                if kind is rows:
                    slots = by_table.get(table)  # type: ignore[arg-type]
                    if slots is None:
                        slots = by_table[table] = self._slots(table, by_target)  # type: ignore
                    if not slots:
                        self._dropped += 1
                    for slot in slots:
                        slot.offsets.append(offset)
                        slot.values.append(value)  # type: ignore[arg-type]
                elif kind is nothing:
                    self._dropped += 1
                else:
                    assert value is not None
                    if kind is Kind.DDL:
                        barriers = self._barriers(offset, value)
                    else:
                        barriers = self._several(offset, value, by_target)
                    for barrier in barriers:
                        before = by_target.pop(str(barrier.route.name), None)
                        done += [before, barrier] if before else [barrier]
                    by_table.clear()
                good += 1
        except BadMessage as bad:
            problem = _Problem(str(bad), lasting=False)
        except (RouteConflict, _NotFollowed) as refused:
            problem = _Problem(str(refused), lasting=True)
        done += by_target.values()
        return [slot.share() for slot in done if slot.offsets], good, problem

    def _slots(self, table: TableName, by_target: dict[str, _Slot]) -> tuple[_Slot, ...]:
        return tuple(
            by_target.setdefault(str(route.name), _Slot(route))
            for route in self._router.targets(table)
        )

    def _barriers(self, offset: int, value: bytes) -> list[_Slot]:
        """One for each target that the statement concerns, whatever its number of tables."""
        routes: dict[str, TargetRoute] = {}
        for statement in self._format.ddl(value):
            for route in self._concerned(statement):
                routes[str(route.name)] = route
        return [_Slot(route, [offset], [value], ddl=True) for route in routes.values()]

    def _concerned(self, statement: Ddl) -> tuple[TargetRoute, ...]:
        concerned = self._router.targets(statement.table)
        if concerned and not statement.table.table:
            # The whole database: there is no one target whose lane could carry it.
            name, sql = statement.table.database, " ".join(statement.sql.split())
            raise _NotFollowed(f"{name}: {statement.refused} is not followed: {sql}")
        return concerned

    def _several(self, offset: int, value: bytes, slots: dict[str, _Slot]) -> list[_Slot]:
        """Give each target its part of a message of several entries; barriers are given back."""
        format_ = self._format
        if not isinstance(format_, Several):
            raise BadMessage("a part of a message, without the others")
        parts = by_target(
            format_,
            value,
            lambda piece: self._router.targets(piece.table),
            self._format.ddl,
            self._concerned,
        )
        self._dropped += not parts
        for part in parts:
            if not part.ddl:
                slot = slots.setdefault(str(part.route.name), _Slot(part.route))
                slot.offsets.append(offset)
                slot.values.append(part.value)
        return [_Slot(part.route, [offset], [part.value], ddl=True) for part in parts if part.ddl]

    def _dispatched(
        self,
        source: TopicPartition,
        next_offset: int,
        lanes: dict[str, tuple[int, int]],
        time_ms: int | None = None,
        epochs: tuple[EpochSpan, ...] = (),
    ) -> fx.Tell:
        self._positions[source] = next_offset
        epoch = self._reading[source].epoch
        sent = msg.Dispatched(epoch, source, next_offset, lanes, time_ms, epochs=epochs)
        return fx.Tell(self._committer, sent)

    # --- backpressure

    def _offer(self, to: Address, batch: msg.RecordBatch) -> fx.Offer:
        self._sent[to] += 1
        self._asked.add(to)
        self._refused.discard(to)
        return fx.Offer(to, batch)

    def _offered(self, offered: msg.Offered, now: float) -> list[object]:
        self._asked.discard(offered.to)
        if offered.taken:
            return [*self._offer_parked(offered.to), *self._delivered()]
        self._sent[offered.to] -= 1
        if self._stopped and not self._delivering:
            # It was counted in the Drain that went out; the processor must not wait for it.
            return [fx.Tell(offered.to, msg.Drain(self._sent[offered.to]))]
        if offered.batch.source not in self._reading:
            return self._delivered()
        if not self._refused:
            self._blocked_at = now
        self._refused.add(offered.to)
        self._parked[offered.to].appendleft(offered.batch)
        return []

    def _offer_parked(self, to: Address) -> list[object]:
        """Offer the oldest parked batch again; the next one follows when it was taken."""
        if not self._parked[to]:
            return []
        out: list[object] = [self._offer(to, self._parked[to].popleft())]
        if not self._blocked:
            out += [*self._resume(), fx.WakeAt(0.0)]
        return out

    def _pause(self) -> list[object]:
        if self._paused:
            return []
        self._paused = True
        by = ", ".join(str(to) for to, parked in self._parked.items() if parked)
        return [fx.Pause(), fx.Log("debug", "reading_paused", {"by": by})]

    def _resume(self) -> list[object]:
        if not self._paused:
            return []
        self._paused = False
        return [fx.Resume(), fx.Log("debug", "reading_resumed", {})]

    # --- assignment

    def _assigned(self, assigned: msg.Assigned) -> list[object]:
        out: list[object] = []
        self._was_assigned = True
        for source, start in assigned.starts.items():
            self._epoch += 1
            log = assigned.logs[source]
            self._reading[source] = _Reading(self._epoch, log, start)
            self._positions[source] = start
            running = assigned.running.get(source)
            at_frontier = source in assigned.at_frontier
            self._parts.begin(source, at_frontier=at_frontier, running=running)
            confirmed = assigned.confirmed.get(source)
            known = assigned.epochs.get(source)
            started = msg.EpochStarted(
                self._epoch, source, start, log.high, confirmed, known, running
            )
            out.append(fx.Tell(self._committer, started))
        # A pause survives a rebalance in librdkafka, even revoke and reassign: say it again.
        out.append(fx.Pause() if self._paused else fx.Resume())
        return out

    def _revoked(self, sources: tuple[TopicPartition, ...], lost: bool) -> list[object]:
        """Of what is lost another member may write already; at the end the drain has waited."""
        settle = () if lost or self._closed else tuple(self._processors)
        out = self._let_go(sources)
        out.append(fx.ReleaseSources(sources, commit=not lost, settle=settle))
        out += self._delivered()
        return out if self._blocked else out + self._resume()

    def _read_again(self, epochs: Mapping[TopicPartition, int]) -> list[object]:
        """A hand-over to oneself: let go of everything, then begin at the frontier as ever.

        After a stop nothing is read: the next run begins at the frontier.
        """
        mine = [
            source
            for source, epoch in epochs.items()
            if source in self._reading and self._reading[source].epoch == epoch
        ]
        if not mine or self._stopped:
            return []
        sources = tuple(sorted(mine))
        fields = {"sources": [str(source) for source in sources]}
        return [
            fx.Log("warning", "reading_again", fields),
            *self._let_go(sources),
            fx.ReleaseSources(sources, commit=False),
            *([] if self._blocked else self._resume()),
            fx.Restart(sources),
            fx.WakeAt(0.0),
        ]

    def _let_go(self, sources: tuple[TopicPartition, ...]) -> list[object]:
        """Drop what is parked and have the processors drop what they have not begun to write."""
        for source in sources:
            self._reading.pop(source, None)
            self._positions.pop(source, None)
            self._parts.drop(source)
        for to, parked in self._parked.items():
            self._parked[to] = deque(batch for batch in parked if batch.source in self._reading)
        return [fx.Tell(p, msg.Forget(sources, self._epoch)) for p in self._processors]

    def _commit(self, commit: msg.CommitFrontiers) -> list[object]:
        mine = {
            source: offset
            for source, offset in commit.frontiers.items()
            if source in self._reading and self._reading[source].epoch == commit.epochs[source]
        }
        out: list[object] = [fx.Commit(mine, wait=commit.last)] if mine else []
        if commit.last:
            self._closed = True
            out += [fx.CloseSource(), fx.Tell(self._supervisor, msg.SourceClosed(self._pipeline))]
        return out

    # --- figures

    def _hear(self, state: msg.SourceState, now: float) -> None:
        self._ends.update(state.ends)
        if state.connected:
            self._unreachable_since = None
        elif self._unreachable_since is None:
            self._unreachable_since = now

    def _figures(self, now: float) -> FetcherFigures:
        since = self._unreachable_since
        return FetcherFigures(
            assigned=self._was_assigned,
            paused=self._blocked,
            positions=dict(self._positions),
            ends={s: max(self._ends.get(s, 0), r.log.high) for s, r in self._reading.items()},
            messages=self._messages,
            dropped=self._dropped,
            parked_bytes=self._parts.held_bytes
            + sum(batch.size for parked in self._parked.values() for batch in parked),
            unreachable_s=None if since is None else now - since,
            repeated=self._parts.repeated,
        )

    # --- the end

    def _fail(self, reason: str) -> list[object]:
        """Read no more; what came before goes on to the processors, or a restart would stop at
        the same place with no more of it applied."""
        failed = fx.Tell(self._supervisor, msg.PipelineFailed(self._pipeline, reason))
        if self._stopped:
            return [failed]
        self._stopped = self._delivering = True
        return [failed, *self._pause(), *self._delivered()]

    def _delivered(self) -> list[object]:
        """After a failure: nothing more comes once all that was read has been taken."""
        if not self._delivering or self._asked or any(self._parked.values()):
            return []
        self._delivering = False
        return self._drain()

    def _stop(self) -> list[object]:
        """Read no more. What is parked will be read again after a restart, so it is let go."""
        if self._stopped:
            return []
        self._stopped = True
        for parked in self._parked.values():
            parked.clear()
        return [*self._pause(), *self._drain()]

    def _drain(self) -> list[object]:
        return [fx.Tell(to, msg.Drain(sent)) for to, sent in self._sent.items()]
