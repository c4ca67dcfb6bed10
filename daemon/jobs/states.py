"""Where a job can stand, and what leads out of each place: one table for all kinds. Pure.

``docs/operations.md`` shows it. A kind, a state or a stage that is missing here fails a test.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from daemon.jobs.record import State


@dataclass(frozen=True, slots=True)
class Place:
    """A place. ``by_itself``: what it waits for; empty where it needs somebody. ``commands``: what
    leads out, whether the daemon runs or not; ``JOB`` and ``TARGET`` stand for names."""

    by_itself: str
    commands: tuple[str, ...]


CANCEL = "binlogd jobs cancel JOB"
PAUSE = "binlogd jobs pause JOB"
RESUME = "binlogd jobs resume JOB"

STATES: Mapping[State, Place] = {
    State.PLANNED: Place("a daemon that runs, and a place among its kind", (CANCEL,)),
    State.RUNNING: Place("its step", (CANCEL, PAUSE)),
    State.WAITING: Place("what its message names", (CANCEL, PAUSE)),
    State.PAUSED: Place("", (RESUME, CANCEL)),
}
"""Of every kind, while it has not ended. A rebuild can't be paused, for its work is the pipeline's.
"""

STAGES: Mapping[str, Mapping[str, Place]] = {
    "load": {
        "new": Place("the source's database", (CANCEL,)),
        "named": Place("the pipeline's edit", (CANCEL,)),
        "filling": Place("the source's database, and the sink", (CANCEL, PAUSE)),
        "filled": Place(
            "a change in the log that is younger than the reads, or load.idle_s", (CANCEL, PAUSE)
        ),
        "following": Place(
            "the stream; then the exchange of names, tried five times in a quarter of an hour",
            (CANCEL,),
        ),
        "again": Place("the log behind what ended the attempt", (CANCEL, PAUSE)),
        "failing": Place("the pipeline's edit, which gives it up", (CANCEL,)),
    },
    "rebuild": {
        "new": Place("the pipeline's edit", (CANCEL,)),
        "filling": Place("the log, read again", (CANCEL,)),
        "refused now": Place(
            "the exchange of names, tried five times in a quarter of an hour", (CANCEL,)
        ),
        "refused for good": Place("the pipeline's edit, which gives it up", (CANCEL,)),
    },
    "verify": {
        "comparing": Place("both databases", (CANCEL, PAUSE)),
        "repairing": Place("the pipeline's edit, and the sink", (CANCEL,)),
    },
}
"""By kind where its work stands."""

WITHOUT_JOB: Mapping[str, Place] = {
    "a rebuild that is recorded without a job": Place("the next start, which makes one", ()),
    "a load that is recorded without a job": Place(
        "", ("binlogd tables rebuild TARGET --cancel --force",)
    ),
    "a table that could not be removed": Place("a next start, or the next rebuild", ()),
    "a reset that is recorded": Place("the next start, which carries it out first", ()),
}
"""What a job, or a command, may leave in a pipeline's snapshot."""
