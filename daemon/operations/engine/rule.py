"""The rule of jobs: which step is due, and what becomes of a job after it. Pure.

No thread, no clock, no disk: ``runner.py`` carries the effects out. A job's record is durable
before the next step begins, so a crash repeats one step.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

from actors.contract.effects import Log
from actors.runtime.backoff import Waits
from daemon.operations.engine.effects import (
    Ask,
    Broken,
    DoStep,
    Effect,
    Event,
    Limits,
    Notify,
    NotSaved,
    Now,
    Remove,
    Request,
    Stepped,
    Told,
    Undo,
    Undone,
)
from daemon.operations.engine.entry import NOTIFY_EVERY_S, JobEntry, Pace, fields_of
from daemon.operations.engine.port import Advanced, Finished
from daemon.operations.engine.record import Job, State

FIRST_WAIT_S = 1.0
LONGEST_WAIT_S = 60.0
"""Between two attempts of a step: something that restarts is found soon, and one that stays away is
tried seldom."""

Out = list[Effect | Log]


class JobsLogic:
    """All jobs of a state directory. One thread's."""

    def __init__(
        self,
        kinds: Mapping[str, Limits],
        jobs: Iterable[Job],
        keep: int,
        jitter: Callable[[], float] | None = None,
    ) -> None:
        """``keep``: how many that have ended stay. A job of a kind that is not in ``kinds`` is kept
        as it is."""
        self._kinds = kinds
        self._entries = {job.id: JobEntry(job) for job in jobs}
        self._keep = keep
        self._waits = Waits(FIRST_WAIT_S, LONGEST_WAIT_S, jitter)
        self._stopping = False

    @property
    def jobs(self) -> list[Job]:
        """All of them, oldest first."""
        found = (entry.job for entry in self._entries.values())
        return sorted(found, key=lambda job: (job.created_ms, job.id))

    @property
    def busy(self) -> list[str]:
        """Those whose step is under way."""
        return sorted(id_ for id_, entry in self._entries.items() if entry.busy)

    def deadline(self, now: Now) -> float | None:
        """The next monotonic second at which ``tick`` has something to do."""
        waiting = (e for e in self._open() if (e.active or e.unsaved) and not e.busy)
        due = [entry.due_s for entry in waiting]
        return None if self._stopping else min(due, default=None)

    def add(self, job: Job) -> None:
        """A new one, which is durable already."""
        self._entries[job.id] = JobEntry(job)

    def stop(self) -> Out:
        """Begin no step any more."""
        self._stopping = True
        return [Ask(id_, "stop") for id_ in self.busy]

    def ask(self, id_: str, request: Request, now: Now) -> tuple[str | None, Out]:
        """An operator's request: why it is refused or None, and the effects."""
        entry = self._entries.get(id_)
        if entry is None:
            return f"job {id_}: unknown", []
        state = entry.job.state
        if state is State.FAILED and request == "cancel":
            # What it has left behind is removed once more, and then it is no failure any more.
            entry.due_s = 0.0
            return None, [*entry.changed(now, wish="cancel", state=State.WAITING, ended_ms=None)]
        if state.is_final:
            return f"job {id_} is {state.value} already", []
        if request == "resume":
            return self._resumed(entry, now)
        if request == "pause" and (state is State.PAUSED or entry.job.wish == "cancel"):
            return f"job {id_} is {'being cancelled' if entry.job.wish else 'paused'} already", []
        limits = self._kinds.get(entry.job.wanted.kind)
        if request == "pause" and limits is not None and not limits.can_pause:
            return f"job {id_}: a {entry.job.wanted.kind} can't be paused, only cancelled", []
        out: Out = []
        if request == "pause" and not entry.busy:
            out += entry.paused(now)
            return None, out
        entry.due_s = 0.0
        if entry.busy:
            out.append(Ask(id_, request))
        return None, [*out, *entry.changed(now, wish=request)]

    def _resumed(self, entry: JobEntry, now: Now) -> tuple[str | None, Out]:
        job = entry.job
        if job.wish == "cancel":
            return f"job {job.id} is being cancelled already", []
        if job.wish == "pause":
            return None, [Ask(job.id, ""), *entry.changed(now, wish="")]
        if job.state is not State.PAUSED:
            return f"job {job.id} is not paused", []
        entry.due_s = 0.0
        state = State.PLANNED if job.started_ms is None else State.WAITING
        saved = entry.changed(now, state=state, message="")
        return None, [Notify(entry.job, "RESUMED"), *saved]

    def handle(self, event: Event, now: Now) -> Out:
        """Take note of an event. What was removed meanwhile is passed over."""
        entry = self._entries.get(event.id)
        if entry is None:
            return []
        match event:
            case Told(_, progress, message):
                measured = entry.pace.measured(progress, now.s)
                entry.shown(now, progress=measured, message=message or entry.job.message)
                return []
            case NotSaved(_, held):
                entry.unsaved, entry.busy = True, entry.busy and not held
                entry.due_s = now.s + self._waits.after(3)
                return []
        entry.busy = False
        match event:
            case Stepped(_, Advanced() as advanced):
                return self._advanced(entry, advanced, now)
            case Stepped(_, Finished() as finished):
                return self._finished(entry, finished, now)
            case Broken(_, reason, away):
                return self._broken(entry, reason, away, now)
            case Undone(_, message):
                out = entry.ended(now, State.CANCELLED, message or "cancelled")
                return [*out, Log("info", "job_cancelled", fields_of(entry.job)), *self._pruned()]
        return []  # Left

    def tick(self, now: Now) -> Out:
        """Begin what is due."""
        if self._stopping:
            return []
        out: Out = []
        while True:
            for entry in list(self._open()):
                if not entry.busy and now.s >= entry.due_s:
                    out += self._due(entry, now)
            out += self._lent(now)
            # A pause has freed a place, perhaps.
            placed = list(self._waiting_for_a_place())
            for entry in placed:
                entry.active = True
            if not placed:
                return out

    def _due(self, entry: JobEntry, now: Now) -> Out:
        out: Out = [*entry.saved(now)] if entry.unsaved else []
        job = entry.job
        if job.wish == "cancel":
            entry.busy = entry.active = True
            return [*out, Undo(job)]
        if job.wish == "pause":
            return [*out, *entry.paused(now)]
        if not entry.active or job.state is State.PAUSED:
            return out
        window = self._kinds[job.wanted.kind].window
        if window is not None and (closed_s := window.opens_in_s(now.ms / 1000)) > 0:
            entry.due_s = now.s + min(closed_s, LONGEST_WAIT_S)
            message = f"the window {window} is closed"
            return [*out, *entry.changed(now, state=State.WAITING, message=message)]
        entry.busy = True
        if job.started_ms is not None and job.state is not State.RUNNING and not entry.polls:
            # Why the last attempt failed stays to be seen until this one has ended.
            message = job.message if job.attempts else ""
            entry.shown(now, state=State.RUNNING, message=message)
        if job.started_ms is None:
            out += entry.changed(now, state=State.RUNNING, started_ms=now.ms, message="")
            out += [Notify(entry.job, "STARTED"), Log("info", "job_started", fields_of(entry.job))]
        return [*out, DoStep(entry.job)]

    def _advanced(self, entry: JobEntry, advanced: Advanced, now: Now) -> Out:
        job = entry.job
        progress = advanced.progress
        measured = job.progress if progress is None else entry.pace.measured(progress, now.s)
        out: Out = []
        if job.attempts:
            out.append(Log("info", "job_goes_on", fields_of(job)))
        out += entry.changed(
            now,
            memory=advanced.memory,
            progress=measured,
            message=advanced.message,
            state=State.WAITING if advanced.wait_s > 0 else State.RUNNING,
            steps=job.steps + 1,
            attempts=0,
        )
        entry.polls = advanced.wait_s > 0
        if entry.polls:
            entry.waits(now)
        else:
            entry.waits_from_s = None
        entry.due_s = now.s + (0.0 if entry.job.wish else advanced.wait_s)
        out += [Notify(entry.job, notice.type, notice.data) for notice in advanced.notices]
        if now.s - entry.notified_s >= NOTIFY_EVERY_S:
            entry.notified_s = now.s
            out.append(Notify(entry.job, "IN_PROGRESS"))
        return out

    def _finished(self, entry: JobEntry, finished: Finished, now: Now) -> Out:
        progress = finished.progress or entry.job.progress
        out: Out = [Notify(entry.job, notice.type, notice.data) for notice in finished.notices]
        out += entry.ended(
            now,
            State.DONE,
            finished.message,
            result=finished.result,
            progress=entry.pace.measured(progress, now.s),
            steps=entry.job.steps + 1,
        )
        return [*out, Log("info", "job_done", fields_of(entry.job)), *self._pruned()]

    def _broken(self, entry: JobEntry, reason: str, away: bool, now: Now) -> Out:
        job = entry.job
        if not away:
            said = f"it can't be cancelled: {reason}" if job.wish == "cancel" else reason
            out: Out = [*entry.ended(now, State.FAILED, said)]
            fields = {**fields_of(entry.job), "reason": said}
            return [*out, Log("error", "job_failed", fields), *self._pruned()]
        entry.pace, entry.polls = Pace(), False
        entry.waits(now)
        attempts = job.attempts + 1
        wait_s = self._waits.after(attempts)
        entry.due_s = now.s + (0.0 if job.wish == "pause" else wait_s)
        saved = entry.changed(now, state=State.WAITING, message=reason, attempts=attempts)
        fields = {**fields_of(job), "reason": reason, "retry_in_s": round(wait_s, 1)}
        return [*saved, Log("warning", "job_waits", fields)]

    def _pruned(self) -> list[Effect]:
        """Forget the oldest of those that have ended, beyond the number that is kept."""
        final = [job for job in self.jobs if job.state.is_final]
        final.sort(key=lambda job: (job.ended_ms or 0, job.id))
        out: list[Effect] = []
        for job in final[: max(0, len(final) - self._keep)]:
            del self._entries[job.id]
            out.append(Remove(job.id))
        return out

    def _open(self) -> Iterator[JobEntry]:
        """Those that may go on, and final ones whose record is still to be stored."""
        for entry in self._entries.values():
            known = entry.job.wanted.kind in self._kinds
            if known and (entry.unsaved or not entry.job.state.is_final):
                yield entry

    def _lent(self, now: Now) -> Out:
        """Places of jobs that only wait, for as many as have none."""
        none = Counter(
            entry.job.wanted.kind
            for entry in self._open()
            if not entry.active and entry.job.state in (State.PLANNED, State.WAITING)
        )
        out: Out = []
        for entry in self._open():
            if none[kind := entry.job.wanted.kind] and entry.only_waits(now):
                none[kind] -= 1
                out += entry.lends(now)
        return out

    def _waiting_for_a_place(self) -> Iterator[JobEntry]:
        """Those that get one now: begun ones first, then the oldest."""
        taken = Counter(e.job.wanted.kind for e in self._entries.values() if e.active)
        waiting = [e for e in self._open() if not e.active and not e.job.state.is_final]
        # Who lent its place comes last, or it would have it back at once.
        waiting.sort(key=lambda e: (e.lent_s, e.job.started_ms is None, e.job.created_ms, e.job.id))
        for entry in waiting:
            kind = entry.job.wanted.kind
            cancelled = entry.job.wish == "cancel"
            if entry.job.state is State.PAUSED and not cancelled:
                continue
            if cancelled or taken[kind] < self._kinds[kind].concurrent:
                taken[kind] += not cancelled
                yield entry
