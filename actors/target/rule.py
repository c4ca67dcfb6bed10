"""The processor's rule: a buffer for each target, closed when due and no write is in flight.

While a write is in flight the buffer grows, so the size of a batch follows the sink's speed: few
large writes under load, small fresh ones when idle. A buffer at its bound is decoded and staged
on disk behind the write: one slow target never stops the reading for the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from actors.contract import effects as fx
from actors.contract import messages as msg
from actors.contract.addresses import WRITERS, Address
from actors.contract.figures import Figures, ProcessorFigures, bare
from actors.contract.writes import Doubt, TargetState
from actors.runtime.mailbox import Tick
from actors.target.attempts import Attempts
from actors.target.batches import Batches
from actors.target.batching import DataError
from actors.target.buffer import TargetBuffer
from actors.target.counting import CountsTold
from actors.target.divergence import remarks_of
from actors.target.limits import Absences, AtCuts, PausedTargets, Relief
from actors.target.loads import Awaited, Loads
from actors.target.pending import DeadRecord, PendingShare
from actors.target.quarantine import Quarantines
from actors.target.quarantine_state import Quarantine
from actors.target.rebalance import Settlements, as_staged, give_up
from actors.target.release import Releases
from actors.target.rollback import BEGINS_LATE, PublishHistory
from actors.target.settings import OpenSpill, ProcessorSettings
from actors.target.shown import figures, remaining
from actors.target.target_state import Phase
from actors.target.unwritten import file_of, place_of
from changes.formats.engine.format import Format
from changes.model.model import TargetName
from changes.routes.routing import Router, TargetRoute
from offsets.position import TopicPartition
from offsets.recovery import PositionError, Watermarks, check_mark, ways_out
from offsets.snapshot import TargetMark


class ProcessorLogic:
    """One of several per pipeline: the targets with ``shard_of(target) == index`` are its own."""

    def __init__(
        self,
        address: Address,
        format_: Format,
        router: Router,
        settings: ProcessorSettings,
        run_id: str,
        jitter: Callable[[], float],
        spills: Iterable[OpenSpill] = (),
        recorded: Mapping[str, TargetMark] | None = None,
    ) -> None:
        """``run_id`` makes batch names unique over restarts, ``jitter`` gives 0..1.

        ``spills`` are those that an earlier run left: their targets are in quarantine still.
        ``recorded`` is what targets are known to have published: what shows less was rolled back.
        """
        self._me, self._settings = address, settings
        self._cuts = AtCuts(
            address.pipeline, settings, lambda: self._flushing, lambda: self._relief.holds
        )
        self._batches = Batches(address, format_, router, settings, run_id, self._cuts.gatherer)
        self._attempts = Attempts(address, settings.retry_base_s, settings.retry_max_s, jitter)
        self._awaited = Awaited(address, settings.processors)
        self._settlements = Settlements(address)
        self._supervisor = Address(address.pipeline, "supervisor")
        self._buffers: dict[str, TargetBuffer] = {}
        # Those that may have something to do: of thousands of tables most are at rest, and to go
        # through all of them at each message would cost more than the work.
        self._awake: dict[str, TargetBuffer] = {}
        self._epochs: dict[TopicPartition, int] = {}
        self._ends: dict[TopicPartition, Watermarks] = {}
        self._counts = CountsTold(settings.counts)
        self._loads = Loads(address, format_, router, settings.loads)
        self._quarantines = Quarantines(address, self._loads, settings)
        self._releases = Releases(address)
        self._paused = PausedTargets(self._quarantines, settings.paused)
        away = self._releases, self._paused, settings.away_after_s
        self._absences = Absences(self._quarantines, *away)
        staging = self._may_stage_behind, self._batches.stage_behind
        self._relief = Relief(settings, self._absences, *staging)
        self._recorded = dict(recorded or {})
        for spill in spills:
            buffer = self._new_buffer(spill.route)
            buffer.keep(Quarantine(spill.reason, spill.state, away=spill.away, fresh=True))
            buffer.tally.failed(spill.reason, None)
            self._loads.adopt(buffer)
        self._drain_after: int | None = None
        self._flush_after: int | None = None
        self._received, self._drained, self._now = 0, False, 0.0
        self._flying: Counter[str] = Counter()

    def handle(self, message: object, now: float) -> list[fx.TargetEffect]:
        """React to one message. ``now`` is in monotonic seconds."""
        self._now = now
        out: list[fx.TargetEffect] = []
        match message:
            case msg.RecordBatch():
                out = self._take(message, now)
            case Tick():
                out = self._attempts.due(self._awake.values(), self._batches.stage, now)
            case msg.Opened():
                out = self._opened(message)
            case msg.Staged(target):
                out = self._staged(target, message)
            case msg.PartitionCounts(counts):
                out = self._batches.note_counts(counts)
            case msg.StageFailed(target):
                again = self._attempts.stage_failed(self._of(target), message, now)
                out = [again] if isinstance(again, fx.Log) else self._staged(target, again)
            case msg.DeadLettered():
                out = self._dead_lettered(message)
            case msg.DeadLetterRefused(target, reason):
                out = self._letter_refused(self._of(target), reason)
            case msg.Written():
                out = self._written(message)
            case msg.Failed():
                out = self._failed(message, now)
            case msg.Forget(sources, epoch):
                out = [*self._forget(sources, epoch), *self._cuts.forget(message)]
            case msg.Settle():
                self._settlements.ask(message)
            case msg.Drain(batches):
                self._drain_after, out = batches, self._cuts.stops()
            case msg.Flush(batches):
                self._flush_after = batches
            case msg.Spilled() | msg.SpillFailed() | msg.SpillRead() | msg.SpillEnded():
                out = self._of_spill(message, now)
            case msg.WaitsFor(_, other):
                found = self._buffers.get(str(other))
                out = self._awaited.answer(message, found, self._draining)
            case msg.InQuarantine():
                out = self._awaits_quarantined(message)
            case msg.RetryTarget(name):
                if name not in self._buffers:
                    return [fx.Reply(None)]
                out = self._releases.begin(self._of(name), self._draining)
            case msg.PauseTarget(name, paused):
                out = [self._paused.put(name, paused)]
                self._awake |= {name: self._buffers[name]} if name in self._buffers else {}
            case msg.CountsFolded():
                return self._counts.folded(self._buffers, message)
            case msg.Remaining():
                lines = map(remaining, self._buffers.values())
                return [fx.Reply(tuple(line for line in lines if line is not None))]
            case Figures():
                targets = tuple(figures(buffer, now) for buffer in self._buffers.values())
                return [fx.Reply(ProcessorFigures(self._relief.holds, targets))]
            case _:
                raise TypeError(f"a processor does not know {message!r}")
        # One that waits for its next attempt holds no writer: what it waits for may need that one.
        writing = (b for b in self._awake.values() if b.life.phase is Phase.WRITING)
        self._flying = Counter(b.route.name.sink for b in writing if b.life.waiting is None)
        for buffer in sorted(self._awake.values(), key=TargetBuffer.waits_since):
            out += self._advance(buffer, now)
        out += self._settlements.answers(self._awake.values())
        awake = [*self._awake.values()]
        out += [*self._relief.relieve(awake, self._epochs, now), *self._after(now)]
        self._awake = {name: buffer for name, buffer in self._awake.items() if not buffer.at_rest}
        return out

    def _new_buffer(self, route: TargetRoute) -> TargetBuffer:
        name = str(route.name)
        self._buffers[name] = TargetBuffer(route, history=PublishHistory(self._recorded.get(name)))
        return self._of(route.name)

    def _of(self, target: TargetName | str) -> TargetBuffer:
        """A target's buffer, to which something happens."""
        name = str(target)
        buffer = self._awake[name] = self._buffers[name]
        return buffer

    # --- data

    def _take(self, batch: msg.RecordBatch, now: float) -> list[fx.TargetEffect]:
        self._received += 1
        if batch.epoch < self._epochs.get(batch.source, 0):
            fields = {"source": str(batch.source), "epoch": batch.epoch}
            return [fx.Log("info", "stale_batch_dropped", fields)]
        self._epochs[batch.source] = batch.epoch
        first_of_source = batch.source not in self._ends
        last = max((share.messages.last for share in batch.shares), default=0)
        high = max(batch.log.high, last + 1)
        self._ends[batch.source] = Watermarks(batch.log.low, high)
        out: list[fx.TargetEffect] = self._check_marks(batch.source) if first_of_source else []
        for share in batch.shares:
            if str(share.route.name) in self._buffers:
                buffer = self._of(share.route.name)
            else:
                buffer = self._new_buffer(share.route)
                # Its marks are read for the first time: not once more for this assignment.
                buffer.note_marked(batch.source, batch.epoch)
                self._loads.adopt(buffer)
                if buffer.quarantine is None:
                    out.append(fx.Tell(WRITERS, buffer.opening(self._me)))
            buffer.history.fed_by(batch)
            buffer.tally.read(len(share.messages))
            if buffer.life.phase is Phase.STOPPED or buffer.doomed is not None:
                buffer.tally.dropped(len(share.messages))
            else:
                chunk = PendingShare(
                    batch.source,
                    batch.epoch,
                    share.messages,
                    share.ddl,
                    now,
                    table=share.table,
                )
                out += [] if buffer.load is None else self._loads.look(buffer, chunk)
                if buffer.quarantine is not None:
                    out += self._quarantines.take(buffer, chunk)
                else:
                    buffer.add(chunk)
        return out

    def _check_marks(self, source: TopicPartition) -> list[fx.TargetEffect]:
        """A target opened for another partition may hold a mark beyond this one's end."""
        out: list[fx.TargetEffect] = []
        for buffer in self._buffers.values():
            try:
                check_mark(source, buffer.name, buffer.hwm(source), self._ends[source])
            except PositionError as error:
                out += self._stop_target(buffer, str(error))
        return out

    # --- closing a batch

    def _advance(self, buffer: TargetBuffer, now: float) -> list[fx.TargetEffect]:
        """Close whatever may be closed now; messages without effect are acknowledged at once."""
        out = self._absences.advance(buffer, self._epochs, now, self._draining)
        if buffer.quarantine is not None:
            out += self._releases.of_load(buffer, self._draining)
            out += self._quarantines.advance(buffer, now, self._draining)
        if buffer.reopen and buffer.life.phase is Phase.READY:
            out.append(fx.Tell(WRITERS, buffer.look(self._me)))
        while (
            buffer.life.phase is Phase.READY
            and buffer.pending_letter is None
            and self._is_due(buffer, now)
            and self._writer_free(buffer)
        ):
            out += self._guarded(buffer, self._batches.close)
            flies = buffer.life.phase in (Phase.WRITING, Phase.STAGING)
            self._flying[buffer.route.name.sink] += flies
        if self._may_stage_behind(buffer) and buffer.queue.size >= self._settings.buffer_bytes:
            out += self._batches.stage_behind(buffer)
        return out + self._cuts.ask(buffer)

    def _may_stage_behind(self, buffer: TargetBuffer) -> bool:
        """Behind a write or while no writer is free; but not when partitions were revoked: what is
        read again must wait for the marks as they will be, or rows of a write in flight would be
        staged again; nor by a decoder that lacks columns."""
        held = not self._writer_free(buffer) or self._cuts.waits(buffer)
        waits = buffer.life.phase is Phase.READY and held
        free = not (buffer.reopen or buffer.columns.outdated) and buffer.pending_letter is None
        return (buffer.life.phase is Phase.WRITING or waits) and free

    def _writer_free(self, buffer: TargetBuffer) -> bool:
        free = self._flying[buffer.route.name.sink] < self._settings.writers
        return free or self._cuts.covers(buffer)

    def _is_due(self, buffer: TargetBuffer, now: float) -> bool:
        settings = self._settings
        if buffer.through or self._cuts.waits(buffer):
            return not self._cuts.waits(buffer)
        due_at = buffer.due_at(settings.batch_age_s)
        return due_at is not None and (
            self._draining
            or self._flushing
            or buffer.quarantine is not None
            or buffer.queue.messages >= settings.batch_messages
            or buffer.queue.size >= settings.batch_bytes
            or buffer.queue.barrier_first
            or now >= due_at
        )

    def _staged(self, target: TargetName, staged: msg.Staged) -> list[fx.TargetEffect]:
        buffer = self._of(target)
        if (why := self._loads.moved(buffer, staged)) is not None:
            gone = () if staged.path is None else (staged.path,)
            return [fx.RemoveStaged(gone), *self._loads.end(buffer, why)]
        return self._guarded(buffer, lambda b, now: self._batches.staged(b, staged, now))

    def _guarded(
        self, buffer: TargetBuffer, act: Callable[[TargetBuffer, float], list[fx.TargetEffect]]
    ) -> list[fx.TargetEffect]:
        """What can't go on with the data stops the target."""
        try:
            return act(buffer, self._now) + self._stop_if_doomed(buffer)
        except DataError as error:
            gone = [fx.RemoveStaged(error.files)] if error.files else []
            return [*gone, *self._refused(buffer, str(error), quarantine=error.quarantine)]

    def _dead_lettered(self, stored: msg.DeadLettered) -> list[fx.TargetEffect]:
        """The next write moves the mark past it, and what follows may be closed."""
        record = DeadRecord(stored.source, stored.epoch, stored.offset)
        self._of(str(stored.target)).letter_stored(record)
        return []

    def _letter_refused(self, buffer: TargetBuffer, reason: str) -> list[fx.TargetEffect]:
        """The record stays open: what came before it is written, then its target stops."""
        if buffer.doomed is None and buffer.life.phase is not Phase.STOPPED:
            buffer.doom(reason, buffer.pending_letter)
        return self._stop_if_doomed(buffer)

    # --- writing

    def _written(self, written: msg.Written) -> list[fx.TargetEffect]:
        buffer = self._of(written.target)
        if buffer.life.phase is Phase.QUARANTINED:
            # It was in flight when something else broke: the replay will find its marks.
            buffer.life.ended()
            return []
        assert written.state is not None
        out = remarks_of(buffer, written.state)
        buffer.wrote(written)
        return out + self._counts.written(buffer, written) + self._stop_if_doomed(buffer)

    def _failed(self, failed: msg.Failed, now: float) -> list[fx.TargetEffect]:
        buffer = self._of(failed.target)
        if buffer.life.phase is Phase.QUARANTINED:
            # All that was in it is in the spill, or will be read again.
            path = file_of(buffer.life.write)
            buffer.life.ended()
            return [fx.RemoveStaged((path,))] if path is not None else []
        if buffer.life.phase is Phase.STOPPED:
            return []  # what it held was dropped, and that was reported
        kind = failed.kind
        straggler = kind is msg.FailureKind.STRAGGLER
        fenced = straggler or kind is msg.FailureKind.FENCED
        write = None if kind is msg.FailureKind.REFUSED else buffer.life.write
        if kind is not msg.FailureKind.RETRY:
            buffer.answered()
        if write is not None and (straggler or write.over(self._epochs)):
            buffer.history.gave_up(buffer.state.hwms if fenced else {})
            return self._give_up(buffer, failed.reason)
        if kind is msg.FailureKind.RACED:
            return [self._attempts.raced(buffer, failed.reason, now)]
        if kind is msg.FailureKind.RETRY:
            return [self._attempts.failed(buffer, failed.reason, now)]
        if kind is msg.FailureKind.WAITS:
            asked = [] if failed.awaits is None else self._awaited.ask(buffer, failed.awaits)
            return [self._attempts.waits(buffer, failed.reason, now), *asked]
        said = f"{buffer.name}: {bare(buffer.name, failed.reason)}{place_of(buffer)}"
        if fenced:
            said += (
                ": another writer moves this target. Two daemons share one only as members of one"
                " group: stop the other one, or route its tables elsewhere, then `binlogd resume"
                f" {self._me.pipeline}`, or `binlogd run`: it goes on from the marks"
            )
            return self._stop_target(buffer, said)
        return self._ended_in_refusal(buffer, said)

    def _ended_in_refusal(
        self, buffer: TargetBuffer, reason: str, *, again: bool = False
    ) -> list[fx.TargetEffect]:
        """A write, or an opening, has ended, and what was in it is not written. ``again``: where
        the sink was only away the spill is replayed from the start."""
        path = file_of(buffer.life.write)
        quarantine = buffer.quarantine
        if again and quarantine is not None and quarantine.away:
            out = self._quarantines.relapse(buffer, reason, self._now, refused=False)
        else:
            out = self._refused(buffer, reason)
        buffer.life.ended()
        # Where the target stops the file is removed already.
        if path is not None and buffer.quarantine is not None:
            out.append(fx.RemoveStaged((path,)))
        return out

    def _give_up(self, buffer: TargetBuffer, reason: str = "") -> list[fx.TargetEffect]:
        if buffer.quarantine is not None:
            # The messages of a release are in the spill: from there they are read again.
            said = f"{buffer.name}: {bare(buffer.name, reason)}{place_of(buffer)}"
            return self._ended_in_refusal(buffer, said, again=True)
        fetcher = Address(self._me.pipeline, "fetcher")
        return give_up(buffer, self._epochs, fetcher) + self._stop_if_doomed(buffer)

    def _opened(self, opened: msg.Opened) -> list[fx.TargetEffect]:
        buffer, state = self._of(opened.target), opened.state
        awaited = buffer.life.looked()
        buffer.answered()
        if (rolled_back := buffer.history.moved_back(buffer.name, state)) is not None:
            said = f"{rolled_back}. {ways_out(self._me.pipeline, buffer.name)}"
            return self._stop_target(buffer, said)
        try:
            for source, hwm in state.hwms.items():
                if source in self._ends:
                    check_mark(source, buffer.name, hwm, self._ends[source])
        except PositionError as error:
            return self._stop_target(buffer, str(error))
        if (gap := self._gap(buffer, state)) is not None:
            return self._refused(buffer, gap)
        out = buffer.history.remarks(buffer.name, state)
        if (what := buffer.history.may_lack(buffer.name, state)) and buffer.load is None:
            buffer.columns.doubts["may lack"] = Doubt(what, amid=True)
            fields = {"target": buffer.name, "what": what, "help": BEGINS_LATE}
            out.append(fx.Log("warning", "rows_may_differ", fields))
        buffer.opened(as_staged(buffer, state))
        out += self._counts.opened(buffer, state)
        if awaited:
            passed = self._releases.passed(buffer, self._epochs)
            if passed is not None:
                return self._refused(buffer, passed)
            buffer.tally.recovered()
        return out

    def _gap(self, buffer: TargetBuffer, state: TargetState) -> str | None:
        lanes = {} if buffer.quarantine is None else buffer.quarantine.spill.lanes
        spilled = {source: first for source, (first, _) in lanes.items()}
        return buffer.history.gap(buffer.name, state, spilled, self._me.pipeline)

    # --- stopping

    def _stop_if_doomed(self, buffer: TargetBuffer) -> list[fx.TargetEffect]:
        """A bad record stops its target once all that came before it is written."""
        if buffer.doomed is None or buffer.life.phase is not Phase.READY or buffer.through:
            return []
        if (ended := self._loads.refused(buffer, buffer.doomed)) is not None:
            return ended
        if buffer.quarantine is not None and not buffer.quarantine.away:
            return self._quarantines.relapse(buffer, buffer.doomed, self._now)
        return self._stop_target(buffer, buffer.doomed)

    def _refused(
        self, buffer: TargetBuffer, reason: str, *, quarantine: bool = False
    ) -> list[fx.TargetEffect]:
        """The target is refused: into quarantine, or back into it, or the pipeline stops."""
        if (ended := self._loads.refused(buffer, reason)) is not None:
            return ended
        allowed = self._settings.quarantine or quarantine
        if buffer.quarantine is not None and (allowed or not buffer.quarantine.away):
            return self._quarantines.relapse(buffer, reason, self._now)
        if not allowed or buffer.life.phase is Phase.STOPPED:
            return self._stop_target(buffer, reason)
        return self._quarantines.begin(buffer, reason, self._epochs, self._now)

    def _awaits_quarantined(self, said: msg.InQuarantine) -> list[fx.TargetEffect]:
        """In any case, also where a refusal stops the pipeline: the other's did not."""
        buffer = self._of(said.target)
        reason = self._awaited.reason(buffer, said)
        return [] if reason is None else self._refused(buffer, reason, quarantine=True)

    def _of_spill(
        self, said: msg.Spilled | msg.SpillFailed | msg.SpillRead | msg.SpillEnded, now: float
    ) -> list[fx.TargetEffect]:
        buffer = self._of(said.target)
        match said:
            case msg.Spilled(_, state):
                return self._quarantines.spilled(buffer, state)
            case msg.SpillFailed():
                return self._quarantines.failed(buffer, said, now)
            case msg.SpillRead():
                self._releases.replayed(buffer, said, now)
                return []
            case msg.SpillEnded():
                return self._releases.ended(buffer)

    def _stop_target(self, buffer: TargetBuffer, reason: str) -> list[fx.TargetEffect]:
        """Apply nothing more: the frontier stays below, and the pipeline stops."""
        if buffer.life.phase is Phase.STOPPED:
            return []
        paths = buffer.stop(reason, self._now)
        out: list[fx.TargetEffect] = [fx.RemoveStaged(tuple(paths))] if paths else []
        failed = msg.PipelineFailed(self._me.pipeline, reason, buffer.bad_at)
        return [*out, *self._cuts.stops(), fx.Tell(self._supervisor, failed)]

    def _forget(self, sources: tuple[TopicPartition, ...], epoch: int) -> list[fx.TargetEffect]:
        for source in sources:
            self._epochs[source] = epoch + 1
            self._ends.pop(source, None)
        self._awake = dict(self._buffers)
        gone: list[str] = []
        out: list[fx.TargetEffect] = []
        for buffer in self._buffers.values():
            gone += buffer.forget(frozenset(sources))
            if buffer.quarantine is not None:
                out += self._quarantines.forget(buffer, frozenset(sources), self._now)
            waiting = buffer.life.waiting
            if waiting is not None and waiting.over(self._epochs):
                out += self._give_up(buffer)
        return [fx.RemoveStaged(tuple(gone)), *out] if gone else out

    # --- time

    @property
    def _draining(self) -> bool:
        return self._drain_after is not None

    @property
    def _flushing(self) -> bool:
        return self._received == self._flush_after  # more came: it was of a cut before

    def _after(self, now: float) -> list[fx.TargetEffect]:
        """Say ``Drained`` when it is so, and ask for the next moment at which something is due."""
        out: list[fx.TargetEffect] = []
        if (
            not self._drained
            and self._received == self._drain_after
            and all(map(self._cuts.is_over, self._awake.values()))
        ):
            self._drained = True
            out.append(fx.Tell(self._supervisor, msg.Drained(self._me)))
        spilling = (self._quarantines.due_at(b, self._draining) for b in self._awake.values())
        silent = (self._absences.due_at(b) for b in self._awake.values())
        times = [at for at in (*spilling, *silent) if at is not None]
        lives = [b.life for b in self._awake.values()]
        times += [life.retry_at for life in lives if life.retry_at is not None]
        times += [life.restage_at for life in lives if life.restage_at is not None]
        times += [
            due_at
            for b in self._awake.values()
            # With no writer free it is a write's end that wakes, not the clock.
            if b.life.phase is Phase.READY
            and b.pending_letter is None
            and (self._writer_free(b) and not self._cuts.waits(b))
            and (due_at := b.due_at(self._settings.batch_age_s)) is not None
        ]
        return [*out, fx.WakeAt(min(times, default=None))]
