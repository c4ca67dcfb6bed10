"""How a target is shown: its figures, and what it holds, in a line."""

from __future__ import annotations

from actors.contract.figures import TargetFigures, WriteFigures
from actors.contract.writes import StagedBatch
from actors.target.buffer import TargetBuffer
from actors.target.target_state import Phase
from settings.counted import counted


def figures(buffer: TargetBuffer, now: float) -> TargetFigures:
    """The target's figures."""
    tally = buffer.tally
    spilling = None if buffer.is_filled or not buffer.quarantine else buffer.quarantine
    answered = buffer.asked_at is None or buffer.life.phase is not Phase.OPENING
    held = None if spilling is None else spilling.figures(now, answered)
    away = spilling is not None and spilling.away
    return TargetFigures(
        target=buffer.name,
        phase="loading" if buffer.is_filled else "away" if away else buffer.life.phase.value,
        buffered_messages=buffer.queue.messages,
        buffered_bytes=buffer.queue.size,
        waiting_s=None if buffer.queue.since is None else now - buffer.queue.since,
        staged_files=len(buffer.staged_files),
        staged_bytes=buffer.staged_bytes,
        messages_read=tally.messages_read,
        messages_replayed=tally.messages_replayed,
        messages_dropped=tally.messages_dropped,
        rows_read=tally.rows_read,
        rows_written=tally.rows_written,
        rows_stored=tally.rows_stored,
        values_nulled=tally.values_nulled,
        dead_letters=tally.dead_letters,
        write=_write_figures(buffer, now),
        error=tally.last_error(now),
        hwms=dict(buffer.state.hwms),
        quarantine=None if away else held,
        away=held if away else None,
        ddl_not_understood=tally.ddl_not_understood,
        rows_may_differ=buffer.state.rows_may_differ,
        writes=tally.writes,
        write_seconds=tally.write_seconds,
    )


def _write_figures(buffer: TargetBuffer, now: float) -> WriteFigures | None:
    write, retry_at = buffer.life.write, buffer.life.retry_at
    if write is None:
        return None
    since = buffer.tally.write_since
    return WriteFigures(
        rows=write.batch.rows,
        attempt=max(buffer.life.attempts, 1),
        age_s=0.0 if since is None else now - since,
        retry_in_s=None if retry_at is None else max(0.0, retry_at - now),
    )


def remaining(buffer: TargetBuffer) -> str | None:
    """One line that names what is held, None when nothing is."""
    if buffer.empty:
        return None
    parts = [f"{counted(buffer.queue.messages, 'message')} waiting"] if buffer.queue.chunks else []
    if buffer.quarantine is not None and not buffer.quarantine.idle:
        parts.append(f"{buffer.quarantine.waiting_bytes} bytes not spilled yet")
    if buffer.pending_letter is not None:
        parts.append(f"offset {buffer.pending_letter.offset} waits for the dead-letter store")
    life = buffer.life
    if buffer.staged_files or life.closing:
        parts.append(f"{len(buffer.staged_files) + (life.closing is not None)} staged")
    if life.write is not None:
        batch: StagedBatch = life.write.batch
        parts.append(f"a write of {counted(batch.rows, 'row')} in flight (attempt {life.attempts})")
    return f"{buffer.name}: {', '.join(parts)}"
