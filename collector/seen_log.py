"""What a look at the source's log leaves behind for later rounds, and for the next run."""

from __future__ import annotations

from typing import Any

import structlog

from collector.memory import CollectorMemory
from collector.watch.kept import KeptLog

_ROLLED_BACK = (
    "an XA transaction was rolled back: if it had been prepared, the log has its rows, and the "
    "tables may have them. Verify and repair them; binlogd collector restart ends this line"
)


def remember(memory: CollectorMemory, kept: KeptLog) -> str:
    """Give why the position is lost, or nothing. Raises OSError."""
    if kept.by_file:
        memory.note(by_file="yes")
    if kept.unread:
        memory.note(unread=kept.unread)
    _note_rollbacks(memory, kept.xa_rollbacks)
    return kept.lost or memory.now.unread


def _note_rollbacks(memory: CollectorMemory, count: int | None) -> None:
    """A server that was started again counts from 0."""
    before = memory.now.xa_rollbacks
    if count is None or before == str(count):
        return
    if before and count:
        log: Any = structlog.get_logger().bind(actor="collector", collector=memory.collector)
        log.warning("collector_xa_rolled_back", count=count)
        memory.note(doubt=_ROLLED_BACK)
    memory.note(xa_rollbacks=str(count))
