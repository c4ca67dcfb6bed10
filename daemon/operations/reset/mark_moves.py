"""Moves the targets' marks as a recorded reset says, before anything is read.

The snapshot holds the new frontiers and the moves of the marks together. Until the moves are done,
nothing of the pipeline may be read. Then they are removed from the snapshot. A crash in between
repeats them, which changes nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace

import structlog

from actors.contract.ports import ResettableSink
from changes.model.errors import SinkUnavailable, TargetRefused
from changes.model.model import TargetName
from offsets.snapshot import Snapshot, TargetMark
from settings.shell import quoted

ATTEMPTS = 6
"""Attempts at one target. Each waits for a session that is being rebuilt."""

FIRST_WAIT_S = 0.5
"""The wait before the second attempt. It doubles, so that all waits together take 15 s."""


class MarksNotMoved(Exception):
    """A target's marks could not be moved: one line. The moves stay recorded; the next start
    retries."""


def has_moves(snapshot: Snapshot) -> bool:
    """Whether a recorded reset is not carried out yet."""
    return any(mark.moves is not None for mark in snapshot.targets.values())


def move_marks(snapshot: Snapshot, sinks: Mapping[str, ResettableSink]) -> Snapshot:
    """Move the marks of all targets with moves. Returns the snapshot without the moves.

    Only this thread uses the sinks. Raises MarksNotMoved.
    """
    targets = dict(snapshot.targets)
    for name, mark in sorted(snapshot.targets.items()):
        if mark.moves is not None:
            targets[name] = _moved(name, mark, sinks)
    return replace(snapshot, targets=targets)


def _moved(name: str, mark: TargetMark, sinks: Mapping[str, ResettableSink]) -> TargetMark:
    assert mark.moves is not None
    log = structlog.get_logger().bind(actor="supervisor")
    try:
        target = TargetName.parse(name)
        sink = sinks[target.sink]
    except (ValueError, KeyError) as error:
        raise MarksNotMoved(
            f"{name}: a reset of it is recorded, and no sink has it: `binlogd tables discard "
            f"{quoted(name)}` gives the reset up"
        ) from error
    wait_s = FIRST_WAIT_S
    for attempt in range(1, ATTEMPTS + 1):
        try:
            state = sink.reset(target, mark.moves)
        except SinkUnavailable as error:
            log.warning("sink_unavailable", target=name, attempt=attempt, reason=str(error))
            problem = str(error)
        except TargetRefused as error:
            raise MarksNotMoved(
                f"a reset is recorded and can't be carried out: {error}. Mend that, or "
                f"`binlogd tables discard {quoted(name)}` gives the reset up"
            ) from error
        else:
            marks = {str(source): hwm for source, hwm in sorted(state.hwms.items())}
            log.info("marks_moved", target=name, marks=marks, version=state.version)
            return TargetMark(
                state.version, dict(state.hwms), rows_may_differ=state.rows_may_differ
            )
        if attempt < ATTEMPTS:
            threading.Event().wait(wait_s)
            wait_s *= 2
    raise MarksNotMoved(f"a reset is recorded and not carried out yet: {problem}")
