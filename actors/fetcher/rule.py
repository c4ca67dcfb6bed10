"""The fetcher's rule: look at each message, split batches by target, never block.

Where a processor's mailbox is full its share is parked and nothing is polled until there is room;
where that takes long all partitions are paused and polling goes on, so the group keeps this
member. ``Dispatched`` always precedes the data it speaks of, so that no acknowledgement can
overtake its registration.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from actors.contract import effects as fx
from actors.contract import messages as msg
from actors.contract.addresses import Address
from actors.contract.figures import FetcherFigures, Figures
from actors.fetcher.cutting import Cutting
from actors.fetcher.held import GoesOn, behind
from actors.fetcher.offers import Offers, Rate
from actors.fetcher.partition import AssignedPartition
from actors.fetcher.reassembly import ReassembledBatch, Reassembly, SequenceGap
from actors.fetcher.recognition import NotRecognised, Recognised, Recognition
from actors.fetcher.remarks import remarks
from actors.fetcher.schema_wait import SchemaWait
from actors.fetcher.settings import FetcherSettings
from actors.fetcher.sorting import Sorter
from actors.runtime.mailbox import Tick
from changes.formats.engine.format import Format
from changes.formats.wire.schemas import SchemaId
from changes.routes.routing import Router, shard_of
from offsets.parts import MissingPart, TooLarge
from offsets.position import EpochSpan, TopicPartition


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
        self._settings = settings
        self._recognition = Recognition(format_, settings.recognition, settings.registry)
        self._schemas = SchemaWait(self._recognition)
        self._left_out_named = router.left_out_named
        self._sorter = Sorter(
            format_, router, ddl_not_understood_stops=settings.ddl_not_understood_stops
        )
        self._parts = Reassembly(format_, settings.part_bytes)
        cuts = settings.cut_every_s, settings.cut_patience_s
        self._cutting = Cutting(pipeline, format_, self._parts, *cuts)
        self._committer = Address(pipeline, "committer")
        self._supervisor = Address(pipeline, "supervisor")
        self._dead_letters = Address(pipeline, "dead-letters")
        self._processors = [Address(pipeline, "processor", i) for i in range(shards)]
        self._partitions: dict[TopicPartition, AssignedPartition] = {}
        self._positions: dict[TopicPartition, int] = {}
        self._epoch = 0
        self._offers = Offers(self._processors)
        self._stopped = self._flushed = False
        self._delivering = False
        self._closed = False
        self._paused = False
        self._asked_to_pause = settings.paused
        self._rate = Rate(settings.messages_per_s)
        self._was_assigned = False
        self._gone: frozenset[str] = frozenset()
        self._unreachable_since: float | None = None
        self._away: Collection[TopicPartition] = ()
        self._messages = 0

    def handle(self, message: object, now: float) -> list[fx.FetcherEffect]:
        """React to one message. ``now`` is in monotonic seconds."""
        match message:
            case Tick():
                return self._poll(now)
            case msg.Polled():
                return self._polled(message, now)
            case msg.Offered():
                return self._offered(message, now)
            case msg.RoomAvailable(to):
                return self._offer_parked(to)
            case msg.Assigned():
                return self._assigned(message, now)
            case msg.Revoked(sources, lost):
                return self._revoked(sources, lost)
            case msg.Reread(epochs):
                return self._reread(epochs)
            case msg.CommitFrontiers():
                return self._commit(message)
            case msg.CutOver() | msg.CutSoon():
                return self._behind_cut(self._cutting.hear(message, now), now)
            case msg.SchemasKept(identities):
                self._schemas.kept(identities)
                return self._settle(identities, now)
            case msg.SchemaMissing(identity, reason):
                return [self._schemas.missing(identity, reason), *self._settle((identity,), now)]
            case msg.SchemaRefused(_, reason):
                return self._fail(reason)
            case msg.RegistryState():
                self._schemas.hear(message, now)
                return []
            case msg.PauseReading(paused):
                return self._pause_reading(paused)
            case msg.StopFetching():
                return self._stop()
            case Figures():
                return [fx.Reply(self._figures(now))]
            case _:
                raise TypeError(f"the fetcher does not know {message!r}")

    # --- polling

    @property
    def _blocked(self) -> bool:
        waits = self._offers.waiting or self._recognition.full or self._cutting.at_rest
        return self._stopped or self._asked_to_pause or waits

    def _poll(self, now: float) -> list[fx.FetcherEffect]:
        settings = self._settings
        if self._closed:
            return []
        if self._blocked:
            since = max(self._offers.blocked_at, self._cutting.since)
            patient_until = since + settings.patience_s
            if not self._paused and now < patient_until:
                return [fx.WakeAt(patient_until)]
            keep_alive = fx.Consume(settings.max_messages, 0.0)
            return [*self._pause(), keep_alive, fx.WakeAt(now + settings.paused_poll_s)]
        if not (most := self._rate.allows(settings.max_messages, now)):
            return [fx.WakeAt(self._rate.due_at(now))]
        return [fx.Consume(most, settings.poll_timeout_s), fx.WakeAt(now)]

    def _polled(self, polled: msg.Polled, now: float) -> list[fx.FetcherEffect]:
        out: list[fx.FetcherEffect] = self._counted(polled.counts)
        if polled.state is not None:
            self._hear(polled.state, now)
        if polled.gone is not None and polled.gone != self._gone:
            self._gone = polled.gone
            out.append(fx.Tell(self._committer, msg.TopicsGone(polled.gone)))
        self._rate.read(sum(len(fetched.offsets) for fetched in polled.batches))
        for fetched in polled.batches:
            if fetched.source in self._partitions and not self._stopped:
                out += self._look_at(fetched, now)
        if self._stopped:
            # The consumer has run ahead of what was dispatched: its position counts no more, or
            # the frontier would pass a bad message that was never sent on.
            return out
        if not any(isinstance(each, fx.WantSchemas) for each in out):  # whose answer does it
            out += self._schemas.flow(paused=self._paused)
        for source, position in polled.positions.items():
            if self._recognition.holds(source) or self._cutting.holds(source):
                continue
            if source in self._partitions and position > self._positions[source]:
                nothing = self._parts.moved(source, position)
                out.append(self._dispatched(nothing, position, {}, last=True))
        if not polled.batches:
            silent = self._paused or self._unreachable_since is not None
            unread = self._partitions if silent else self._away
            out += self._cutting.idle(self._partitions, now, unread)
        while not self._stopped and (goes_on := self._cutting.lapsed(now)) is not None:
            out += self._behind_cut(goes_on, now)
        if polled.error is not None:
            out += self._fail(polled.error)
        return out + self._undetected(polled, now) + self._flush(now)

    def _flush(self, now: float) -> list[fx.FetcherEffect]:
        """Have what was read written: at a cut, and where a run reads only what is there."""
        if self._offers.settled and not self._stopped and self._cutting.flush(now):
            return list(self._offers.flush())
        ends, assigned = self._settings.until, self._partitions
        if ends is None or self._flushed or self._stopped or not self._offers.settled:
            return []
        if not assigned or any(self._positions[s] < ends.get(s, 0) for s in assigned):
            return []
        self._flushed = True
        return list(self._offers.flush())

    def _look_at(self, fetched: msg.Fetched, now: float) -> list[fx.FetcherEffect]:
        """Hold messages that can't be read yet, and send on the others."""
        try:
            return self._go_on(self._recognition.take(fetched), now)
        except NotRecognised as unknown:
            return self._fail(str(unknown))

    def _settle(self, identities: tuple[SchemaId, ...], now: float) -> list[fx.FetcherEffect]:
        """Schemas are kept, or will not come: what waited for them goes on."""
        if self._stopped:
            return []
        try:
            out = self._go_on(self._recognition.settle(identities), now)
        except NotRecognised as unknown:
            return self._fail(str(unknown))
        if self._stopped:
            return out
        out += self._schemas.flow(paused=self._paused)
        return out if self._blocked else [*out, *self._resume(), fx.WakeAt(0.0)]

    def _go_on(self, recognised: Recognised, now: float) -> list[fx.FetcherEffect]:
        out: list[fx.FetcherEffect] = []
        for detected in recognised.detected:
            fields = {"topic": detected.topic, "format": detected.format}
            out += [fx.Log("info", "format_told", fields), fx.Tell(self._committer, detected)]
        if recognised.wanted:
            out.append(fx.WantSchemas(recognised.wanted))
        for batch in recognised.batches:
            if not self._stopped:
                out += self._take_to_cut(batch, now)
        return out

    # --- cuts

    def _take_to_cut(self, fetched: msg.Fetched, now: float) -> list[fx.FetcherEffect]:
        """Send a batch on, up to the boundary of a cut that is due."""
        head, asked = self._cutting.take(fetched, self._partitions, now)
        out = [] if head is None else self._take(head)
        return out if self._stopped else [*out, *asked]

    def _behind_cut(self, goes_on: GoesOn | None, now: float) -> list[fx.FetcherEffect]:
        """What was held goes on; no other cut is due so soon."""
        if goes_on is None:
            return []
        out: list[fx.FetcherEffect] = [*goes_on.said]
        if self._cutting.let_flow() and not self._paused:
            out += self._schemas.resumed()  # before some are paused again
        for fetched in goes_on.held:
            if not self._stopped:
                out += self._take_to_cut(fetched, now)
        return out if self._blocked else [*out, *self._resume(), fx.WakeAt(0.0)]

    def _undetected(self, polled: msg.Polled, now: float) -> list[fx.FetcherEffect]:
        """Fail a run that reads only what is there, where messages still wait for a format, or too
        long for a schema."""
        if self._settings.until is None or self._stopped:
            return []
        if (why := self._schemas.given_up(now, self._settings.schema_patience_s)) is not None:
            return self._fail(why)
        ends = self._settings.until
        for topic in self._recognition.waiting:
            mine = [source for source in ends if source.topic == topic]
            if all(polled.positions.get(s, self._positions.get(s, -1)) >= ends[s] for s in mine):
                return self._fail(self._recognition.problem(topic))
        return []

    def _take(self, fetched: msg.Fetched) -> list[fx.FetcherEffect]:
        """Put parts together and route what is whole."""
        out: list[fx.FetcherEffect] = []
        before = self._parts.repeated
        try:
            for reassembled in self._parts.batches(fetched):
                rest: msg.Fetched | None = reassembled.fetched
                while rest is not None and not self._stopped:
                    more, rest = self._route(reassembled, rest)
                    out += more
                if self._stopped:
                    break
        except (MissingPart, TooLarge, SequenceGap) as missing:
            out += self._fail(str(missing))
        if repeated := self._parts.repeated - before:
            fields = {"source": str(fetched.source), "messages": repeated}
            out.append(fx.Log("info", "sent_again", fields))
        return out

    # --- routing

    def _route(
        self, reassembled: ReassembledBatch, fetched: msg.Fetched
    ) -> tuple[list[fx.FetcherEffect], msg.Fetched | None]:
        """Split what is left of a batch by target: first ``Dispatched``, then a share for each
        processor.

        Also returns what is left behind a message that became a dead letter.
        """
        found = self._sorter.sort(fetched)
        good, problem, source = found.good, found.problem, fetched.source
        next_offset = fetched.next_offset if problem is None else fetched.offsets[good]
        lanes: dict[str, tuple[int, int]] = {}
        by_shard: dict[Address, list[msg.Share]] = {}
        for share in found.shares:
            target = str(share.route.name)
            first = lanes[target][0] if target in lanes else share.messages.first
            lanes[target] = (first, share.messages.last)
            shard = self._processors[shard_of(target, len(self._processors))]
            by_shard.setdefault(shard, []).append(share)
        self._messages += good
        letter = problem is not None and not problem.lasting and self._settings.dead_letters
        time_ms, epochs = fetched.time_ms, fetched.epochs
        out: list[fx.FetcherEffect] = [
            self._dispatched(reassembled, next_offset, lanes, time_ms, epochs, last=not letter),
            *remarks(source, found),
        ]
        partition = self._partitions[source]
        for to, mine in by_shard.items():
            out += self._offers.give(to, partition.batch(source, mine))
        if problem is None:
            return out, None
        reason = self._schemas.why_missing(fetched.values[good]) or problem.reason
        if not letter:
            at = source, fetched.offsets[good]
            return out + self._fail(f"{source} offset {at[1]}: {reason}", at), None
        rest = behind(fetched, good)
        sent = self._dead_letter(reassembled, fetched, good, reason, last=rest is None)
        return out + sent, rest

    def _dead_letter(
        self,
        reassembled: ReassembledBatch,
        fetched: msg.Fetched,
        place: int,
        reason: str,
        *,
        last: bool,
    ) -> list[fx.FetcherEffect]:
        """One message to be stored: pending in a lane of its own until it is."""
        source, offset = fetched.source, fetched.offsets[place]
        after = fetched.offsets[place + 1] if place + 1 < len(fetched.offsets) else None
        next_offset = fetched.next_offset if after is None else after
        epoch = self._partitions[source].epoch
        letter = msg.DeadLetter(source, epoch, offset, fetched.values[place], reason)
        self._messages += 1
        return [
            self._dispatched(
                reassembled, next_offset, {msg.DEAD_LETTERS: (offset, offset)}, last=last
            ),
            fx.Tell(self._dead_letters, letter),
        ]

    def _dispatched(
        self,
        reassembled: ReassembledBatch,
        next_offset: int,
        lanes: dict[str, tuple[int, int]],
        time_ms: int | None = None,
        epochs: tuple[EpochSpan, ...] = (),
        *,
        last: bool,
    ) -> fx.Tell:
        source = reassembled.fetched.source
        self._positions[source] = next_offset
        epoch = self._partitions[source].epoch
        sent = msg.Dispatched(epoch, source, next_offset, lanes, time_ms, epochs=epochs)
        return fx.Tell(self._committer, reassembled.completed(sent, last=last))

    # --- backpressure

    def _offered(self, offered: msg.Offered, now: float) -> list[fx.FetcherEffect]:
        self._offers.answered(offered)
        if offered.taken:
            return [*self._offer_parked(offered.to), *self._delivered(), *self._flush(now)]
        if self._stopped and not self._delivering:
            # It was counted in the Drain that went out; the processor must not wait for it.
            return [self._offers.drain(offered.to)]
        if offered.batch.source not in self._partitions:
            return self._delivered()
        self._offers.park_refused(offered, now)
        return []

    def _offer_parked(self, to: Address) -> list[fx.FetcherEffect]:
        out: list[fx.FetcherEffect] = [*self._offers.offer_parked(to)]
        if out and not self._blocked:
            out += [*self._resume(), fx.WakeAt(0.0)]
        return out

    def _pause_reading(self, paused: bool) -> list[fx.FetcherEffect]:
        self._asked_to_pause = paused
        if paused:
            return [*self._pause(), fx.Reply(True)]
        more = [] if self._blocked else [*self._resume(), fx.WakeAt(0.0)]
        return [*more, fx.Reply(True)]

    def _pause(self) -> list[fx.FetcherEffect]:
        if self._paused:
            return []
        self._paused = True
        by = ", ".join(self._offers.waited_for)
        return [fx.Pause(), fx.Log("debug", "reading_paused", {"by": by})]

    def _resume(self) -> list[fx.FetcherEffect]:
        if not self._paused:
            return []
        self._paused = False
        return [*self._schemas.resumed(), fx.Log("debug", "reading_resumed", {})]

    # --- assignment

    def _counted(self, counts: Mapping[str, int]) -> list[fx.FetcherEffect]:
        """Tell the processors how many partitions topics have."""
        self._cutting.counted(counts)
        return [fx.Tell(p, msg.PartitionCounts(counts)) for p in self._processors if counts]

    def _assigned(self, assigned: msg.Assigned, now: float) -> list[fx.FetcherEffect]:
        out: list[fx.FetcherEffect] = self._counted(assigned.counts)
        self._was_assigned = True
        for left, (source, start) in enumerate(assigned.starts.items(), 1 - len(assigned.starts)):
            self._epoch += 1
            known = source in assigned.unrecorded, assigned.adopted.get(source)
            self._partitions[source] = AssignedPartition(
                self._epoch, assigned.logs[source], start, *known
            )
            self._positions[source] = start
            running = assigned.running.get(source)
            at_frontier = source in assigned.at_frontier
            self._parts.begin(source, at_frontier=at_frontier, running=running)
            if at_frontier or start <= assigned.logs[source].low:
                self._cutting.begin(source, start, now)
            started = assigned.started(source, self._epoch, more=left < 0)
            out.append(fx.Tell(self._committer, started))
        # A pause survives a rebalance in librdkafka, even revoke and reassign: say it again.
        return out + ([fx.Pause()] if self._paused else self._schemas.resumed())

    def _revoked(self, sources: tuple[TopicPartition, ...], lost: bool) -> list[fx.FetcherEffect]:
        """Of what is lost another member may write already; at the end the drain has waited."""
        settle = () if lost or self._closed else tuple(self._processors)
        self._was_assigned = self._was_assigned and not lost
        out = self._drop_partitions(sources)
        out.append(fx.ReleaseSources(sources, commit=not lost, settle=settle))
        out += self._delivered()
        return out if self._blocked else out + self._resume()

    def _reread(self, epochs: Mapping[TopicPartition, int]) -> list[fx.FetcherEffect]:
        """A hand-over to oneself: drop everything, then begin at the frontier, as after a revoke.

        After a stop nothing is read: the next run begins at the frontier.
        """
        mine = [
            source
            for source, epoch in epochs.items()
            if source in self._partitions and self._partitions[source].epoch == epoch
        ]
        if not mine or self._stopped:
            return []
        sources = tuple(sorted(mine))
        fields = {"sources": [str(source) for source in sources]}
        return [
            fx.Log("warning", "reading_again", fields),
            *self._drop_partitions(sources),
            fx.ReleaseSources(sources, commit=False),
            *([] if self._blocked else self._resume()),
            fx.Restart(sources),
            fx.WakeAt(0.0),
        ]

    def _drop_partitions(self, sources: tuple[TopicPartition, ...]) -> list[fx.FetcherEffect]:
        """Drop what is parked and have the processors drop what they have not begun to write."""
        for source in sources:
            self._partitions.pop(source, None)
            self._positions.pop(source, None)
            self._parts.drop(source)
            self._recognition.drop(source)
        self._offers.keep(self._partitions)
        self._cutting.keep(self._partitions)
        return [fx.Tell(p, msg.Forget(sources, self._epoch)) for p in self._processors]

    def _commit(self, commit: msg.CommitFrontiers) -> list[fx.FetcherEffect]:
        mine = {
            source: offset
            for source, offset in commit.frontiers.items()
            if source in self._partitions
            and self._partitions[source].epoch == commit.epochs[source]
        }
        out: list[fx.FetcherEffect] = [fx.Commit(mine, wait=commit.last)] if mine else []
        if commit.last:
            self._closed = True
            out += [fx.CloseSource(), fx.Tell(self._supervisor, msg.SourceClosed(self._pipeline))]
        return out

    # --- figures

    def _hear(self, state: msg.SourceState, now: float) -> None:
        since, self._away = self._unreachable_since, state.away
        self._unreachable_since = None if state.connected else now if since is None else since

    def _figures(self, now: float) -> FetcherFigures:
        since = self._unreachable_since
        return FetcherFigures(
            assigned=self._was_assigned,
            paused=self._blocked and not self._asked_to_pause,
            positions=dict(self._positions),
            messages=self._messages,
            dropped=self._sorter.dropped,
            parked_bytes=self._parts.held_bytes
            + self._recognition.held_bytes
            + self._offers.parked_bytes,
            unreachable_s=None if since is None else now - since,
            repeated=self._parts.repeated,
            passed_over=self._sorter.passed_over,
            left_out=self._sorter.left_out.total(),
            left_out_tables=len(self._sorter.left_out),
            left_out_named=self._left_out_named(),
            formats=self._recognition.known,
            formats_awaited=dict(self._recognition.waiting),
            registry=self._schemas.figures(now),
            topics_gone=self._gone,
            uncut=self._cutting.uncut or self._cutting.behind,
        )

    # --- the end

    def _fail(self, reason: str, *at: tuple[TopicPartition, int]) -> list[fx.FetcherEffect]:
        """Read no more; what came before goes on to the processors, or a restart would stop at
        the same place with no more of it applied."""
        failed = fx.Tell(self._supervisor, msg.PipelineFailed(self._pipeline, reason, *at))
        if self._stopped:
            return [failed]
        self._stopped = self._delivering = True
        return [failed, *self._pause(), *self._delivered()]

    def _delivered(self) -> list[fx.FetcherEffect]:
        """After a failure: nothing more comes once all that was read has been taken."""
        if not self._delivering or not self._offers.settled:
            return []
        self._delivering = False
        return [*self._offers.drains()]

    def _stop(self) -> list[fx.FetcherEffect]:
        """Read no more. What is parked is dropped: it is read again after a restart."""
        if self._stopped:
            return []
        self._stopped = True
        self._offers.clear()
        return [*self._pause(), *self._offers.drains()]
