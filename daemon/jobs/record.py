"""A job as it is recorded: what was asked for, how far it is, and what it still remembers. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal
from uuid import uuid4

Wish = Literal["", "pause", "cancel"]
"""What an operator asked of a job that has not followed yet."""

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
class Progress:
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
class Wanted:
    """A request for a job. ``targets`` as in ``tables list``; ``params`` is JSON, the kind's own.

    ``origin``: who asked, as ``command``, ``signal TOPIC:PARTITION@OFFSET`` or ``first sight``.
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
    wanted: Wanted
    state: State = State.PLANNED
    wish: Wish = ""
    progress: Progress = Progress()
    message: str = ""
    memory: Mapping[str, Any] = field(default_factory=dict)
    result: Mapping[str, Any] = field(default_factory=dict)
    created_ms: int = 0
    started_ms: int | None = None
    changed_ms: int = 0
    ended_ms: int | None = None
    attempts: int = 0
    steps: int = 0


def new_job(wanted: Wanted, now_ms: int, id_: str | None = None) -> Job:
    """A job for a request, with a name of its own. Raises ValueError for an unfit ``id_``."""
    name = id_ or f"{wanted.kind}-{uuid4().hex[:8]}"
    if not NAME.fullmatch(name):
        raise ValueError(f"{name!r} is no job's name")
    return Job(name, wanted, created_ms=now_ms, changed_ms=now_ms)
