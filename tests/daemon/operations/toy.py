"""A kind of job that counts, for tests alone: its steps are numbers in a list."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from daemon.config.pipeline_parts import Window
from daemon.operations.engine.port import Advanced, Control, Finished, Look, Outcome, Plan
from daemon.operations.engine.record import Job, JobProgress, JobRequest

KIND = "count"


def wanted(to: int = 3, pipeline: str = "shop", **params: Any) -> JobRequest:
    """A request to count that far."""
    return JobRequest(KIND, pipeline, ("lake.s.t",), {"to": to, **params})


class Count:
    """See ``JobKind``. ``fails``: by number of the call what a step raises. ``gate``: what each
    step waits for. ``called``: what it was called for, in order."""

    name = KIND
    can_pause = True
    window: Window | None = None

    def __init__(
        self,
        fails: Mapping[int, Exception] | None = None,
        gate: Callable[[Control], object] = lambda control: None,
        concurrent: int = 2,
    ) -> None:
        self.concurrent = concurrent
        self._fails = fails or {}
        self._gate = gate
        self._lock = threading.Lock()
        self.called: list[tuple[str, int]] = []
        self.undone: list[str] = []

    def plan(self, look: Look, wanted: JobRequest) -> Plan:
        """Refuses a negative number."""
        to = wanted.params["to"]
        refusals = () if to >= 0 else ("it is negative",)
        return Plan((wanted,), (f"counts to {to}",), {"to": to}, refusals)

    def wrong(self, wanted: JobRequest) -> Sequence[str]:
        """It takes all."""
        return ()

    def step(self, job: Job, control: Control) -> Outcome:
        """One more."""
        at, to = job.memory.get("at", 0), job.wanted.params["to"]
        with self._lock:
            self.called.append((job.id, at))
            number = len(self.called)
        self._gate(control)
        if (error := self._fails.get(number)) is not None:
            raise error
        if at >= to:
            return Finished({"counted": at}, f"counted to {at}", JobProgress(at, to, "numbers"))
        wait_s = float(job.wanted.params.get("wait_s", 0.0))
        return Advanced({"at": at + 1}, JobProgress(at + 1, to, "numbers"), "counts", wait_s)

    def undo(self, job: Job, control: Control) -> str:
        """Notes it."""
        self.undone.append(job.id)
        return "counts no more"
