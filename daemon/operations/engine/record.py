"""A job as it is recorded: the request, how far it is, and what it still remembers. Pure."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal
from uuid import uuid4

import msgspec

from changes.model.printable import own_json_text

Wish = Literal["", "pause", "cancel"]
"""An operator's request to a job that is not carried out yet."""

NAME = re.compile(r"[a-z][a-z0-9-]{0,63}")
"""A job's id: it names a file, and a lane in a target's marks."""


class State(StrEnum):
    """Where a job stands. The last three are final."""

    PLANNED = "planned"
    """Recorded and not begun: no daemon runs, or others come first."""
    RUNNING = "running"
    WAITING = "waiting"
    """For what its message names; it goes on by itself."""
    PAUSED = "paused"
    """Until an operator resumes it."""
    CANCELLED = "cancelled"
    FAILED = "failed"
    DONE = "done"

    @property
    def is_final(self) -> bool:
        """Whether nothing more happens to it."""
        return self in (State.CANCELLED, State.FAILED, State.DONE)


@dataclass(frozen=True, slots=True)
class JobProgress:
    """How far a job is, in ``unit`` (rows, messages). ``total`` None: not known.

    ``rate`` is in units per second over the last minute, ``eta_s`` the seconds that are left at
    that rate; the runner fills both in, None while they are not known.
    """

    done: int = 0
    total: int | None = None
    unit: str = "rows"
    rate: float | None = None
    eta_s: float | None = None

    @property
    def ratio(self) -> float | None:
        """The part that is done, from 0 to 1; None where the total is not known."""
        if self.total is None:
            return None
        return 1.0 if self.total <= 0 else min(1.0, max(0.0, self.done / self.total))


@dataclass(frozen=True, slots=True)
class JobRequest:
    """A request for a job. ``targets`` as in ``tables list``; ``params`` is JSON, the kind's own.

    ``origin``: who requests it: ``command``, ``signal TOPIC:PARTITION@OFFSET`` or ``first sight``.
    ``signal``: the id that came with a signal, which the notifications repeat.
    """

    kind: str
    pipeline: str
    targets: tuple[str, ...] = ()
    params: Mapping[str, Any] = field(default_factory=dict)
    origin: str = "command"
    signal: str = ""


@dataclass(frozen=True, slots=True)
class Job:
    """One job. Times are Unix milliseconds.

    ``memory`` is JSON and the kind's own: what its next step needs of the ones before. It is
    durable before the next step begins, so that a crash repeats one step at most. ``message``: what
    it does or waits for, or why it failed, in one line. ``attempts``: of the step under way.
    ``steps``: how many have ended, so that it tells a job that moves from one that stands.
    ``result``: what the kind says at the end, JSON.
    """

    id: str
    wanted: JobRequest
    state: State = State.PLANNED
    wish: Wish = ""
    progress: JobProgress = JobProgress()
    message: str = ""
    memory: Mapping[str, Any] = field(default_factory=dict)
    result: Mapping[str, Any] = field(default_factory=dict)
    created_ms: int = 0
    started_ms: int | None = None
    changed_ms: int = 0
    ended_ms: int | None = None
    attempts: int = 0
    steps: int = 0


def new_job(wanted: JobRequest, now_ms: int, id_: str | None = None) -> Job:
    """A job for a request, with a name of its own. Raises ValueError for an unfit ``id_``."""
    name = id_ or f"{wanted.kind}-{uuid4().hex[:8]}"
    if not NAME.fullmatch(name):
        raise ValueError(f"{name!r} is no job's name")
    return Job(name, wanted, created_ms=now_ms, changed_ms=now_ms)


# A job's JSON text, as in its file: versioned, checksummed, readable. Pure.

VERSION = 1
"""Version of the file's layout. A reader refuses what it does not know instead of guessing."""


class DamagedJob(Exception):
    """The text is not a whole job of ours: what is wrong with it, in one line."""


def encode(job: Job) -> str:
    """The file's text: indented JSON with a checksum over the body."""
    body = msgspec.to_builtins(job)
    document = {"version": VERSION, "sha256": _checksum(body), "body": body}
    return own_json_text(document, indent=1) + "\n"


def decode(text: str) -> Job:
    """Read ``encode``'s text back. Raises DamagedJob: cut short, altered, of another version."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DamagedJob(f"not JSON: {error}") from error
    if not isinstance(document, dict) or not isinstance(document.get("body"), dict):
        raise DamagedJob("not a job's file")
    if (version := document.get("version")) != VERSION:
        raise DamagedJob(f"version {version!r}, this binlogd reads {VERSION}")
    body = document["body"]
    try:
        if document.get("sha256") != _checksum(body):
            raise DamagedJob("the checksum does not match the content")
        job = msgspec.convert(body, Job)
    except (ValueError, OverflowError, RecursionError) as error:
        raise DamagedJob(f"a member is missing or has the wrong type: {error}") from error
    if unknown := _unknown(body, msgspec.to_builtins(job)):
        raise DamagedJob(f"a newer binlogd wrote it: {unknown} is unknown to this one")
    if not NAME.fullmatch(job.id):
        raise DamagedJob(f"{job.id!r} is no job's name")
    return job


def _unknown(body: dict[str, Any], known: dict[str, Any]) -> str | None:
    """A member that would be lost: what is not known may ask for something."""
    for name, value in body.items():
        if name not in known:
            return name
        if isinstance(value, dict) and (inner := _unknown(value, known[name])):
            return f"{name}.{inner}"
    return None


def _checksum(body: dict[str, Any]) -> str:
    """Over the content, not the layout: a person may re-indent the file."""
    try:
        text = msgspec.json.encode(body, order="sorted")
    except UnicodeEncodeError:  # half a character
        text = own_json_text(body).encode()
    return hashlib.sha256(text).hexdigest()


# Where a job can stand, and what leads out of each place: one table for all kinds. Pure.


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
