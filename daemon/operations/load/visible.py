"""When a load may read: all that was in the log when it began is visible to its reads.

A commit is in the log before others see it. Where the log's last messages are shown to be of the
database that is read, this tells when the commits that were in its log then are visible; otherwise
the margin is waited for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from changes.model.places import Place
from daemon.operations.load.memory import Filled, Step, load_of
from daemon.operations.load.ports import LoadSettings
from databases.base.errors import DatabaseRefused
from databases.base.log_end import LogEnd, NoEnd, ReaderPosition, compared

LOOK_S = 1.0
"""Between two looks at what is visible."""


def log_end(
    settings: LoadSettings,
    places: Sequence[Place],
    position: ReaderPosition,
    ask: Callable[[], LogEnd],
) -> LogEnd:
    """Where a database has its log now, if messages are of it, or who reads it. ``places``: their
    positions, and ``position`` the reader's, read before this. ``ask``: queries the database."""
    if not settings.by_positions:
        return NoEnd("load.by_positions is off")
    if not places and not position:
        return NoEnd("the log's last messages tell no position")
    try:
        return compared(ask(), places, position)
    except DatabaseRefused as error:
        return NoEnd(f"its position can't be read: {error}")


def wait(step: Step, target: str, filled: Filled) -> tuple[str, float] | None:
    """What is waited for before the first range is read, and how long; None: nothing any more."""
    if filled.past == "":
        return None
    left_s = filled.begun_ms / 1000 + step.settings.margin_s - step.now_ms / 1000
    if filled.past is None:
        if left_s > 0 and (why := _hidden(step, target, filled)):
            line = f"{target}: is read in {left_s:.0f} s, when all that is in the log is visible"
            look_s = left_s if isinstance(filled.log, NoEnd) else min(left_s, LOOK_S)
            return f"{line} ({why})", look_s
        # The present one, so at or above the beginning.
        filled.past = step.tables.position(filled.source)
    if filled.past and not step.tables.shown(filled.source, filled.past):
        return f"{target}: waits until the replica has applied {filled.past}", LOOK_S
    filled.past = ""
    return None


def _hidden(step: Step, target: str, filled: Filled) -> str:
    """Why something in the log may not be visible yet; empty where all is."""
    if filled.log is None:
        load = load_of(step.snapshot(), target, filled, step.job.id)
        there = step.log.places(sorted(load.since) if load is not None else [])
        read = step.log.position()
        filled.log = log_end(
            step.settings, there, read, lambda: step.tables.log_end([filled.source])
        )
    if isinstance(filled.log, NoEnd):
        return filled.log.why
    try:
        if step.tables.visible(filled.source, filled.log):
            return ""
    except DatabaseRefused as error:
        filled.log = NoEnd(f"its position can't be read: {error}")
    return "or as soon as the database shows what was being committed at the beginning"
