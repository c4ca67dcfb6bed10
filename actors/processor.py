"""The processor's rule: one buffer per target; a batch closes when it is due and nothing flies.

While a write is in flight the buffer grows, so the size of a batch follows the sink's speed: few
large writes under load, small fresh ones when idle. A buffer at its bound is decoded and staged
on disk behind the write: one slow target never stops the reading for the others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from actors import effects as fx
from actors import messages as msg
from actors.buffer import Chunk, Closing, Phase, Piece, TargetBuffer
from actors.closing import (
    DataError,
    check_lanes,
    close_pieces,
    close_rows,
    plan_ddl,
    problem_of,
)
from actors.figures import Figures, ProcessorFigures
from actors.mailbox import Tick
from actors.messages import WRITERS, Address
from actors.ports import StagedBatch, TargetState
from changes.formats.base import Format
from changes.model import TargetName
from changes.routing import Router, TargetRoute
from offsets.position import TopicPartition
from offsets.recovery import PositionError, Watermarks, check_mark


@dataclass(frozen=True, slots=True)
class ProcessorSettings:
    """When a batch is due, and how much may be held.

    ``memory_bytes`` bounds the raw messages of all this processor's buffers; at that bound the
    largest is staged. ``staged_bytes`` bounds its pieces on disk; beyond it data is left waiting.
    """

    batch_messages: int = 50_000
    batch_bytes: int = 16 << 20
    batch_age_s: float = 1.0
    buffer_bytes: int = 32 << 20
    memory_bytes: int = 128 << 20
    staged_bytes: int = 4 << 30
    writers: int = 64
    """Writes in flight at most. No more than there are writers: a batch that would only queue
    grows instead, so under load there are fewer and larger writes. No fewer: a writer that is
    free is never left waiting by targets that hang."""
    retry_base_s: float = 0.5
    retry_max_s: float = 30.0


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
    ) -> None:
        """``run_id`` makes batch names unique over restarts, ``jitter`` gives 0..1."""
        self._me = address
        self._format = format_
        self._router = router
        self._settings = settings
        self._run_id = run_id
        self._jitter = jitter
        self._committer = Address(address.pipeline, "committer")
        self._supervisor = Address(address.pipeline, "supervisor")
        self._buffers: dict[str, TargetBuffer] = {}
        self._epochs: dict[TopicPartition, int] = {}
        self._ends: dict[TopicPartition, Watermarks] = {}
        self._received = 0
        self._drain_after: int | None = None
        self._drained = False
        self._held = False
        self._batch_number = 0
        self._now = 0.0
        self._flying = 0

    def handle(self, message: object, now: float) -> list[object]:
        """React to one message. ``now`` is in monotonic seconds."""
        self._now = now
        match message:
            case msg.RecordBatch():
                out = self._take(message, now)
            case Tick():
                out = self._retry_due(now)
            case msg.Opened(target, state):
                out = self._opened(target, state)
            case msg.Staged():
                out = self._staged(message)
            case msg.StageFailed(target, reason):
                out = self._stage_failed(target, reason, now)
            case msg.Written():
                out = self._written(message)
            case msg.Failed():
                out = self._failed(message, now)
            case msg.Forget(sources, epoch):
                out = self._forget(sources, epoch)
            case msg.Drain(batches):
                self._drain_after = batches
                out = []
            case msg.Remaining():
                lines = (buffer.remaining() for buffer in self._buffers.values())
                return [fx.Reply(tuple(line for line in lines if line is not None))]
            case Figures():
                targets = tuple(buffer.figures(now) for buffer in self._buffers.values())
                return [fx.Reply(ProcessorFigures(self._held, targets))]
            case _:
                raise TypeError(f"a processor does not know {message!r}")
        self._flying = sum(b.phase is Phase.WRITING for b in self._buffers.values())
        for buffer in sorted(self._buffers.values(), key=_waiting_since):
            out += self._advance(buffer, now)
        return out + self._relieve() + self._after(now)

    # --- data

    def _take(self, batch: msg.RecordBatch, now: float) -> list[object]:
        self._received += 1
        if batch.epoch < self._epochs.get(batch.source, 0):
            fields = {"source": str(batch.source), "epoch": batch.epoch}
            return [fx.Log("info", "stale_batch_dropped", fields)]
        self._epochs[batch.source] = batch.epoch
        first_of_source = batch.source not in self._ends
        last = max((share.offsets[-1] for share in batch.shares), default=0)
        high = max(batch.log.high, last + 1)
        self._ends[batch.source] = Watermarks(batch.log.low, high)
        out: list[object] = self._check_marks(batch.source) if first_of_source else []
        for share in batch.shares:
            buffer = self._buffers.get(str(share.route.name))
            if buffer is None:
                buffer = self._new_buffer(share.route)
                out.append(fx.Tell(WRITERS, msg.OpenTarget(share.route.name, self._me)))
            buffer.tally.messages_read += len(share.offsets)
            if buffer.phase is Phase.STOPPED or buffer.doomed is not None:
                buffer.tally.messages_dropped += len(share.offsets)
            else:
                buffer.add(
                    Chunk(
                        batch.source,
                        batch.epoch,
                        share.offsets,
                        share.values,
                        share.size,
                        share.ddl,
                        now,
                    )
                )
        return out

    def _check_marks(self, source: TopicPartition) -> list[object]:
        """A target opened for another partition may hold a mark beyond this one's end."""
        out: list[object] = []
        for buffer in self._buffers.values():
            try:
                check_mark(source, buffer.name, buffer.hwm(source), self._ends[source])
            except PositionError as error:
                out += self._stop_target(buffer, str(error))
        return out

    def _new_buffer(self, route: TargetRoute) -> TargetBuffer:
        buffer = self._buffers[str(route.name)] = TargetBuffer(route)
        return buffer

    # --- closing a batch

    def _advance(self, buffer: TargetBuffer, now: float) -> list[object]:
        """Close whatever may be closed now; messages without effect are acknowledged at once."""
        out: list[object] = []
        if buffer.reopen and buffer.phase is Phase.READY:
            buffer.reopen = False
            buffer.phase = Phase.OPENING
            out.append(fx.Tell(WRITERS, msg.OpenTarget(buffer.route.name, self._me)))
        while buffer.phase is Phase.READY and self._is_due(buffer, now) and self._writer_free:
            out += self._close(buffer)
            self._flying += buffer.phase in (Phase.WRITING, Phase.STAGING)
        if self._may_spill(buffer) and buffer.size >= self._settings.buffer_bytes:
            out += self._spill(buffer)
        return out

    def _may_spill(self, buffer: TargetBuffer) -> bool:
        """Behind a write or while no writer is free; but not when partitions were revoked: what is
        read again must wait for the marks as they will be, or rows of a write in flight would be
        staged anew."""
        waits = buffer.phase is Phase.READY and not self._writer_free
        return (buffer.phase is Phase.WRITING or waits) and not buffer.reopen

    @property
    def _writer_free(self) -> bool:
        return self._flying < self._settings.writers

    def _is_due(self, buffer: TargetBuffer, now: float) -> bool:
        settings = self._settings
        if buffer.through:
            return True
        return buffer.since is not None and (
            self._draining
            or buffer.messages >= settings.batch_messages
            or buffer.size >= settings.batch_bytes
            or buffer.barrier_first
            or now >= buffer.since + settings.batch_age_s
        )

    def _close(self, buffer: TargetBuffer) -> list[object]:
        """Close one batch (or one barrier) of a target that has no write in flight."""
        if not buffer.barrier_first:
            return self._close_rows(buffer, buffer.take(self._settings.buffer_bytes), None)
        if buffer.through:
            return self._close_rows(buffer, [], None)
        return self._close_ddl(buffer)

    def _close_rows(
        self, buffer: TargetBuffer, chunks: list[Chunk], piece_of: TopicPartition | None
    ) -> list[object]:
        """Have chunks decoded and staged: as the batch, or as a piece of ``piece_of``."""
        pieces = () if piece_of is not None else self._pieces_of_one_write(buffer)
        if len(pieces) < len(buffer.pieces) and piece_of is None:
            for chunk in reversed(chunks):
                buffer.give_back(chunk)
            return self._start_staging(buffer, close_pieces(buffer, pieces))
        closing, replayed = close_rows(buffer, chunks, pieces, piece_of)
        out: list[object] = []
        buffer.tally.messages_replayed += replayed
        if replayed:
            fields = {"target": buffer.name, "messages": replayed}
            out.append(fx.Log("info", "replay_dropped", fields))
        if pieces or any(part.stretch.offsets for part in closing.parts):
            return out + self._start_staging(buffer, closing)
        return out + self._covered(buffer, closing)

    def _start_staging(self, buffer: TargetBuffer, closing: Closing) -> list[object]:
        buffer.closing = closing
        buffer.phase = Phase.STAGING
        return [self._stage(buffer)]

    def _covered(self, buffer: TargetBuffer, closing: Closing) -> list[object]:
        """There is no row in it: all but a piece, which waits for the write, is done with that."""
        closing.cover(None)
        buffer.cover(closing.through, closing.epochs)
        return self._nothing_to_write(buffer) if closing.piece_of is None else []

    def _close_ddl(self, buffer: TargetBuffer) -> list[object]:
        chunk = buffer.take(1)[0]
        buffer.cover({chunk.source: chunk.offsets[-1]}, {chunk.source: chunk.epoch})
        try:
            batch = plan_ddl(buffer, chunk, self._format, self._router, self._next_id())
        except DataError as error:
            return self._stop_target(buffer, str(error))
        if batch is None:
            return self._nothing_to_write(buffer)
        return self._submit(buffer, batch, dict(buffer.epochs), dict(buffer.through))

    def _nothing_to_write(self, buffer: TargetBuffer) -> list[object]:
        """Replays and messages without effect are done as soon as what came before them is."""
        done = msg.Written(buffer.route.name, dict(buffer.epochs), dict(buffer.through), None)
        buffer.through.clear()
        buffer.epochs.clear()
        return [fx.Tell(self._committer, done)] if done.through else []

    # --- staging

    def _pieces_of_one_write(self, buffer: TargetBuffer) -> tuple[Piece, ...]:
        """The oldest pieces, as many as may be read back at once: after a long outage there may
        be gigabytes of them."""
        taken: list[Piece] = []
        size = 0
        for piece in buffer.pieces:
            size += piece.size
            if taken and size > self._settings.buffer_bytes:
                break
            taken.append(piece)
        return tuple(taken)

    def _stage(self, buffer: TargetBuffer) -> fx.Stage:
        closing = buffer.closing
        assert closing is not None
        paths = tuple(piece.path for piece in closing.pieces)
        return fx.Stage(buffer.route, paths, tuple(part.stretch for part in closing.parts))

    def _spill(self, buffer: TargetBuffer) -> list[object]:
        """Decode and stage what waits behind the write, one lane a piece, up to a barrier."""
        chunks: list[Chunk] = []
        while buffer.chunks and not buffer.barrier_first:
            if chunks and buffer.chunks[0].source != chunks[0].source:
                break
            chunks += buffer.take(1)
        if not chunks:
            return []
        return self._close_rows(buffer, chunks, chunks[0].source)

    def _staged(self, staged: msg.Staged) -> list[object]:
        buffer = self._buffers[str(staged.target)]
        closing, buffer.closing = buffer.closing, None
        assert closing is not None
        buffer.stage_again_at, buffer.stage_attempts = None, 0
        buffer.phase = Phase.WRITING if buffer.write is not None else Phase.READY
        buffer.pieces = [piece for piece in buffer.pieces if piece not in closing.pieces]
        buffer.tally.rows_read += staged.changes
        buffer.tally.values_nulled += staged.nulled
        if staged.mode is not None:
            try:
                check_lanes(buffer, closing, staged.mode)
            except DataError as error:
                gone = [] if staged.path is None else [fx.RemoveStaged((staged.path,))]
                return [*gone, *self._stop_target(buffer, str(error))]
        problem = problem_of(closing, staged.bad)
        closing.cover(staged.bad)
        if problem is not None:
            buffer.doomed = problem
            buffer.clear()
        place = self._piece_staged if closing.piece_of is not None else self._batch_staged
        return place(buffer, closing, staged) + self._stop_if_doomed(buffer)

    def _piece_staged(
        self, buffer: TargetBuffer, closing: Closing, staged: msg.Staged
    ) -> list[object]:
        buffer.cover(closing.through, closing.epochs)
        if staged.path is not None:
            ((source, through),) = closing.through.items()
            piece = Piece(source, staged.path, staged.changes, staged.size, through)
            buffer.pieces.append(piece)
        return []

    def _batch_staged(
        self, buffer: TargetBuffer, closing: Closing, staged: msg.Staged
    ) -> list[object]:
        if staged.path is None:
            buffer.cover(closing.through, closing.epochs)
            return self._nothing_to_write(buffer)
        assert staged.schema is not None
        assert staged.mode is not None
        batch = StagedBatch(
            batch_id=self._next_id(),
            target=buffer.route.name,
            mode=staged.mode,
            schema=staged.schema,
            lanes=buffer.spans(closing.through),
            path=staged.path,
            rows=staged.rows,
            changes=staged.changes + sum(piece.changes for piece in closing.pieces),
            has_deletes=staged.has_deletes,
            partial=staged.partial,
            bounds=staged.bounds,
        )
        return self._submit(buffer, batch, closing.epochs, closing.through)

    def _stage_failed(self, target: TargetName, reason: str, now: float) -> list[object]:
        buffer = self._buffers[str(target)]
        buffer.tally.failed(reason, now)
        buffer.stage_attempts += 1
        wait = self._back_off(buffer.stage_attempts)
        buffer.stage_again_at = now + wait
        return [self._again(buffer, "stage_failed", reason, buffer.stage_attempts, wait)]

    # --- writing

    def _submit(
        self,
        buffer: TargetBuffer,
        batch: StagedBatch,
        epochs: dict[TopicPartition, int],
        through: dict[TopicPartition, int],
    ) -> list[object]:
        write = msg.WriteBatch(batch, epochs, through, self._me, self._committer)
        for source, last in through.items():
            if buffer.through.get(source, last + 1) <= last:  # no piece waits behind this write
                buffer.through.pop(source)
                buffer.epochs.pop(source)
        buffer.write = write
        buffer.tally.write_since = self._now
        buffer.phase = Phase.WRITING
        buffer.attempts = 1
        return [fx.Tell(WRITERS, write)]

    def _written(self, written: msg.Written) -> list[object]:
        buffer = self._buffers[str(written.target)]
        buffer.tally.rows_written += written.changes
        if buffer.write is not None:
            buffer.tally.rows_stored += buffer.write.batch.rows
            buffer.tally.lasting = False
        buffer.write = None
        buffer.retry_at, buffer.attempts = None, 0
        assert written.state is not None
        buffer.state = written.state
        if buffer.phase is Phase.WRITING:
            buffer.phase = Phase.READY
        return self._stop_if_doomed(buffer)

    def _failed(self, failed: msg.Failed, now: float) -> list[object]:
        buffer = self._buffers[str(failed.target)]
        if failed.kind is msg.FailureKind.RETRY:
            buffer.tally.failed(failed.reason, now)
            buffer.attempts += 1
            wait = self._back_off(buffer.attempts)
            buffer.retry_at = now + wait
            return [self._again(buffer, "sink_unavailable", failed.reason, buffer.attempts, wait)]
        return self._stop_target(buffer, f"{buffer.name}: {failed.reason}{_place(buffer)}")

    def _opened(self, target: TargetName, state: TargetState) -> list[object]:
        buffer = self._buffers[str(target)]
        buffer.retry_at, buffer.attempts = None, 0
        try:
            for source, hwm in state.hwms.items():
                if source in self._ends:
                    check_mark(source, buffer.name, hwm, self._ends[source])
        except PositionError as error:
            return self._stop_target(buffer, str(error))
        buffer.state = state
        if buffer.phase is Phase.OPENING:
            buffer.phase = Phase.READY
            buffer.tally.lasting = False
        return []

    # --- trying again

    def _back_off(self, attempts: int) -> float:
        """Seconds to wait, doubling, with jitter; the target's changes pile up, others go on."""
        settings = self._settings
        wait = min(settings.retry_max_s, settings.retry_base_s * 2.0 ** min(attempts - 1, 20))
        return wait * (0.5 + self._jitter() / 2)

    @staticmethod
    def _again(buffer: TargetBuffer, event: str, reason: str, attempt: int, wait: float) -> fx.Log:
        fields = {
            "target": buffer.name,
            "reason": reason,
            "attempt": attempt,
            "retry_in_s": round(wait, 3),
        }
        return fx.Log("warning", event, fields)

    def _retry_due(self, now: float) -> list[object]:
        out: list[object] = []
        for buffer in self._buffers.values():
            if buffer.stage_again_at is not None and buffer.stage_again_at <= now:
                buffer.stage_again_at = None
                out.append(self._stage(buffer))
            if buffer.retry_at is None or buffer.retry_at > now:
                continue
            buffer.retry_at = None
            if buffer.write is not None:
                out.append(fx.Tell(WRITERS, buffer.write))
            else:
                out.append(fx.Tell(WRITERS, msg.OpenTarget(buffer.route.name, self._me)))
        return out

    # --- stopping

    def _stop_if_doomed(self, buffer: TargetBuffer) -> list[object]:
        """A bad record stops its target once all that came before it is written."""
        if buffer.doomed is None or buffer.phase is not Phase.READY or buffer.through:
            return []
        return self._stop_target(buffer, buffer.doomed)

    def _stop_target(self, buffer: TargetBuffer, reason: str) -> list[object]:
        """Apply nothing more: the frontier stays below, and the pipeline is told to stop."""
        if buffer.phase is Phase.STOPPED:
            return []
        buffer.tally.failed(reason, self._now)
        paths = [piece.path for piece in buffer.pieces]
        if buffer.write is not None and buffer.write.batch.path is not None:
            paths.append(buffer.write.batch.path)
        buffer.stop()
        out: list[object] = [fx.RemoveStaged(tuple(paths))] if paths else []
        failed = msg.PipelineFailed(self._me.pipeline, reason)
        return [*out, fx.Tell(self._supervisor, failed)]

    def _forget(self, sources: tuple[TopicPartition, ...], epoch: int) -> list[object]:
        for source in sources:
            self._epochs[source] = epoch + 1
            self._ends.pop(source, None)
        gone: list[str] = []
        for buffer in self._buffers.values():
            gone += buffer.forget(frozenset(sources))
            buffer.reopen = True
        return [fx.RemoveStaged(tuple(gone))] if gone else []

    # --- limits and time

    @property
    def _draining(self) -> bool:
        return self._drain_after is not None

    def _relieve(self) -> list[object]:
        """Stage the largest buffers while too much is held; leave data waiting when none can be."""
        settings = self._settings
        out: list[object] = []
        candidates = [b for b in self._buffers.values() if self._may_spill(b) and b.chunks]
        candidates.sort(key=lambda b: b.size)
        staged = sum(p.size for b in self._buffers.values() for p in b.pieces)
        held = sum(b.held_bytes for b in self._buffers.values())
        while held > settings.memory_bytes and candidates and staged <= settings.staged_bytes:
            largest = candidates.pop()
            out += self._spill(largest)
            held = sum(b.held_bytes for b in self._buffers.values())
        hold = held > settings.memory_bytes or staged > settings.staged_bytes
        if hold != self._held:
            self._held = hold
            fields = {"buffered_bytes": held, "staged_bytes": staged}
            out += [fx.Hold(hold), fx.Log("info", "hold" if hold else "flow", fields)]
        return out

    def _after(self, now: float) -> list[object]:
        """Say ``Drained`` when it is so, and ask for the next moment at which something is due."""
        out: list[object] = []
        if (
            not self._drained
            and self._received == self._drain_after
            and all(b.empty or b.phase is Phase.STOPPED for b in self._buffers.values())
        ):
            self._drained = True
            out.append(fx.Tell(self._supervisor, msg.Drained(self._me)))
        times = [b.retry_at for b in self._buffers.values() if b.retry_at is not None]
        times += [b.stage_again_at for b in self._buffers.values() if b.stage_again_at is not None]
        times += [
            b.since + self._settings.batch_age_s
            for b in self._buffers.values()
            # With no writer free it is a write's end that wakes, not the clock.
            if b.phase is Phase.READY and b.since is not None and self._writer_free
        ]
        out.append(fx.WakeAt(min(times, default=None)))
        return out

    def _next_id(self) -> str:
        self._batch_number += 1
        return f"{self._run_id}-{self._me.pipeline}-{self._me.number}-{self._batch_number}"


def _waiting_since(buffer: TargetBuffer) -> float:
    """The order in which targets get a free writer: the longest wait first."""
    return buffer.since if buffer.since is not None else float("-inf")


def _place(buffer: TargetBuffer) -> str:
    """Which messages a refused write was made of."""
    if buffer.write is None:
        return ""
    lanes = buffer.write.batch.lanes.items()
    spans = ", ".join(
        f"{source} offsets {span.after + 1}..{span.through}" for source, span in lanes
    )
    return f" ({spans})"
