"""One job as the rule sees it, and what becomes of it. Pure."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace
from typing import Any

from daemon.operations.engine.effects import Effect, Notify, Now, ReleaseThread, Save
from daemon.operations.engine.record import Job, JobProgress, State

# How fast a job goes, of what it reports. Pure.

OVER_S = 60.0
"""The rate is over so long. Shorter: it jumps with each chunk. Longer: it tells of the past."""

APART_S = 1.0
"""Between two samples that are kept, so that they are few."""


@dataclass(slots=True)
class Pace:
    """The samples of one job since it runs: (monotonic seconds, done)."""

    _samples: deque[tuple[float, int]] = field(default_factory=deque)

    def measured(self, progress: JobProgress, now_s: float) -> JobProgress:
        """The same with rate and remaining time."""
        samples = self._samples
        if samples and progress.done < samples[-1][1]:
            samples.clear()  # it began again
        while len(samples) > 1 and samples[1][0] <= now_s - OVER_S:
            samples.popleft()
        rate = eta = None
        if samples and now_s > samples[0][0]:
            rate = (progress.done - samples[0][1]) / (now_s - samples[0][0])
        if not samples or now_s - samples[-1][0] >= APART_S:
            samples.append((now_s, progress.done))
        if rate and progress.total is not None:
            eta = max(0.0, (progress.total - progress.done) / rate)
        rounded = None if rate is None else round(rate, 3)
        return replace(progress, rate=rounded, eta_s=None if eta is None else round(eta, 1))


SAVE_EVERY_MS = 30_000
"""A job that only waits is saved so often: what would be lost is a figure."""

NOTIFY_EVERY_S = 10.0
"""Between two IN_PROGRESS of one job."""

LENDS_AFTER_S = 30.0
"""A job that has only waited for so long lends its place to one that has none: what it waits for,
such as a log that no reader writes any more, may never come."""


def fields_of(job: Job) -> dict[str, object]:
    """What the log says of a job."""
    wanted = job.wanted
    return {"job": job.id, "pipeline": wanted.pipeline, "targets": list(wanted.targets)}


@dataclass(slots=True)
class JobEntry:
    """``active``: it has a place among those of its kind. ``busy``: its thread is in a step.

    ``due_s``: the monotonic second before which no step begins. ``polls``: its last step requested
    a wait. ``unsaved``: the record is ahead of its file. ``waits_from_s``: the monotonic second
    since which it has only waited, None while it gets on. ``lent_s``: when it last lent its place
    to another job because of that.
    """

    job: Job
    active: bool = False
    busy: bool = False
    due_s: float = 0.0
    polls: bool = False
    waits_from_s: float | None = None
    lent_s: float = float("-inf")
    unsaved: bool = False
    saved_ms: int = 0
    notified_s: float = float("-inf")
    pace: Pace = field(default_factory=Pace)

    def changed(self, now: Now, **members: Any) -> list[Effect]:
        """The record with other members, durably if it tells anything new."""
        old, self.job = self.job, replace(self.job, changed_ms=now.ms, **members)
        figures = replace(old, progress=self.job.progress, changed_ms=now.ms, steps=self.job.steps)
        if figures == self.job and now.ms - self.saved_ms < SAVE_EVERY_MS and not self.unsaved:
            return []
        return self.saved(now)

    def saved(self, now: Now) -> list[Effect]:
        """Have it made durable."""
        self.saved_ms, self.unsaved = now.ms, False
        return [Save(self.job)]

    def shown(self, now: Now, **members: Any) -> None:
        """The record with other members, for who looks: nothing is lost with them."""
        self.job = replace(self.job, changed_ms=now.ms, **members)

    def ended(self, now: Now, state: State, message: str, **members: Any) -> list[Effect]:
        """It is over."""
        self.active = self.busy = False
        saved = self.changed(
            now, state=state, wish="", message=message, ended_ms=now.ms, attempts=0, **members
        )
        done = state is State.DONE
        told = {} if done else {"reason": message}
        # The record comes last: where it can't be stored, the others are still done.
        type_ = "COMPLETED" if done else "ABORTED"
        return [ReleaseThread(self.job.id), Notify(self.job, type_, told), *saved]

    def waits(self, now: Now) -> None:
        """Its last step has not got on."""
        if self.waits_from_s is None:
            self.waits_from_s = now.s

    def only_waits(self, now: Now) -> bool:
        """It has a place, and has not got on for so long that another one may have it."""
        idle = self.active and not self.busy and not self.job.wish
        since = self.waits_from_s
        return idle and since is not None and now.s - since >= LENDS_AFTER_S

    def lends(self, now: Now) -> list[Effect]:
        """Another job gets its place; it goes on where it is once it has one again."""
        self.active, self.pace = False, Pace()
        self.waits_from_s, self.lent_s = None, now.s
        return [ReleaseThread(self.job.id)]

    def paused(self, now: Now) -> list[Effect]:
        """It rests until somebody resumes it, and gives its place to another."""
        self.active, self.pace, self.waits_from_s = False, Pace(), None
        saved = self.changed(now, state=State.PAUSED, wish="", message="", attempts=0)
        return [ReleaseThread(self.job.id), Notify(self.job, "PAUSED"), *saved]
