"""``verify.every``: records a verification of a pipeline's targets whenever one is due."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

import structlog

from actors.runtime.periodic import Periodic
from changes.model.printable import reason_of
from daemon.operations.engine.port import Look
from daemon.operations.engine.record import Job, JobRequest
from daemon.operations.engine.runner import JobRunner, JobsClosed
from daemon.operations.engine.thread import AWAY, REFUSED
from daemon.operations.load.kind import KIND as LOAD
from daemon.operations.verify.between.pairs import BETWEEN
from daemon.operations.verify.job.kind import KIND, VerifyKind
from daemon.operations.verify.partition import PARTITION
from offsets.snapshot import Snapshot
from sources.base.port import NotAnswered

ORIGIN = "schedule"

LOOK_EVERY_S = 30.0
"""Between two looks at the clock; ``every`` is a minute at least."""


def due(jobs: Iterable[Job], snapshot: Snapshot, every_s: float, now_ms: int) -> bool:
    """Whether the last one that was recorded is so long ago. Where none is, it is due once there is
    something to compare: the first loads have ended. One that has not ended is never followed by
    another. One of a time that is still to come, since the clock was set back, does not count.

    What a person asked for counts where it compares all targets with the source, each row of them:
    no partition, and no targets with each other.
    """
    of_pipeline = [job for job in jobs if job.wanted.pipeline == snapshot.pipeline]
    own = [job for job in of_pipeline if job.wanted.kind == KIND and _covers(job, snapshot)]
    if not own:
        loads = any(job.wanted.kind == LOAD and not job.state.is_final for job in of_pipeline)
        return bool(snapshot.targets) and not (snapshot.rebuilding or loads)
    if any(not job.state.is_final for job in own):
        return False
    last = max((job.created_ms for job in own if job.created_ms <= now_ms), default=0)
    return now_ms - last >= every_s * 1000


def _covers(job: Job, snapshot: Snapshot) -> bool:
    wanted = job.wanted
    rows = wanted.params.get("sample", 1) == 1 and wanted.params.get(PARTITION) is None
    rows = rows and wanted.params.get(BETWEEN) is None
    return wanted.origin == ORIGIN or (rows and set(wanted.targets) >= snapshot.targets.keys())


class VerifySchedule:
    """A thread of its own: planning asks databases, which may be away."""

    def __init__(
        self,
        runner: JobRunner,
        look: Callable[[], Look],
        comes: Callable[[str, Snapshot], bool],
    ) -> None:
        """``comes``: whether a pipeline's load at first sight is still to be recorded."""
        self._runner = runner
        self._look = look
        self._comes = comes
        self._tried: dict[str, float] = {}
        self._rounds = Periodic(
            "verify-schedule", self.look, LOOK_EVERY_S, "jobs", "verify_schedule_failed"
        )
        self._log: Any = structlog.get_logger().bind(actor="jobs")

    def start(self) -> None:
        """Begin: a reload may give any pipeline a schedule."""
        self._rounds.start()

    def close(self) -> None:
        """Record no more. Returns at once; a planning under way is left behind."""
        self._rounds.close()

    def look(self) -> None:
        """Look at all pipelines once. On the thread."""
        for pipeline, section in self._look().config.pipeline.items():
            every_s = section.verify.every
            if every_s is not None and not self._rounds.closed:
                self._look_at(pipeline, every_s)

    def _look_at(self, pipeline: str, every_s: float) -> None:
        now_ms = time.time_ns() // 1_000_000
        # A list of jobs that is cut short must not make one follow another.
        tried = time.monotonic() - self._tried.get(pipeline, float("-inf")) < every_s
        if tried:
            return
        try:
            snapshot = self._look().snapshot(pipeline)
            soon = self._comes(pipeline, snapshot)
            if soon or not due(self._runner.jobs, snapshot, every_s, now_ms):
                return
            plan = VerifyKind().plan(self._look(), JobRequest(KIND, pipeline, ("*",), {}, ORIGIN))
            if plan.refusals:
                self._log.warning(
                    "verify_not_scheduled", pipeline=pipeline, reason=plan.refusals[0]
                )
            else:
                self._runner.add(plan.wanted[0]).result()
            self._tried[pipeline] = time.monotonic()
        except (JobsClosed, NotAnswered, *AWAY, *REFUSED) as error:
            self._log.warning("verify_not_scheduled", pipeline=pipeline, reason=reason_of(error))
        except Exception:
            # An unforeseen fault of one pipeline must not end the schedule of the others.
            self._log.exception("verify_not_scheduled", pipeline=pipeline)
