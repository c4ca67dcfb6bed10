"""``binlogd jobs pause``, ``resume`` and ``cancel``: of the running daemon, or of the next one."""

from __future__ import annotations

from typing import Annotated, ClassVar

from daemon.operations.engine.effects import Request, limits_of
from daemon.operations.engine.here import Here
from daemon.operations.engine.operation import Done, Operation, Option, Params
from daemon.operations.engine.port import Plan
from daemon.operations.engine.rule import JobsLogic
from daemon.operations.engine.runner import now
from daemon.operations.figures import UNASKED
from daemon.state.edits import EditRefused
from settings.shell import quoted_pattern


class JobParams(Params):
    """Which job."""

    job: Annotated[str, Option("As jobs list names it.", argument=True, metavar="JOB")]


class JobRequest(Operation[JobParams]):
    """A request to a job. A daemon that starts later follows it then."""

    params, example = JobParams, "load-1"
    request: ClassVar[Request]
    said: ClassVar[str]

    def plan(self, params: JobParams, here: Here) -> Plan:
        """Whether there is such a job, and what it would do."""
        refuse_unrecorded(params.job)
        logic = JobsLogic(limits_of(here.kinds), here.jobs, keep=1000)
        if (refusal := logic.ask(params.job, self.request, now())[0]) is not None:
            raise EditRefused(refusal)
        return Plan(lines=(self._line(params, here),))

    def step(self, params: JobParams, here: Here) -> Done:
        """Record the request."""
        refuse_unrecorded(params.job)
        here.ask_job(params.job, self.request)
        here.say(self._line(params, here))
        return Done()

    def _line(self, params: JobParams, here: Here) -> str:
        return f"job {params.job} {self.said}{'' if here.running else ', from the next start on'}"


class PauseJob(JobRequest):
    """Let a job rest after the step under way, until it is resumed. Status 2: refused."""

    words, request, said = "jobs pause", "pause", "pauses after the step under way"
    undone_by = "jobs resume"


class ResumeJob(JobRequest):
    """Have a paused job go on. Status 2: refused."""

    words, request, said = "jobs resume", "resume", "goes on"
    undone_by = "jobs pause"


class CancelJob(JobRequest):
    """Give a job up, and have what it has begun removed. One that has failed is no failure any
    more. Status 2: refused."""

    words, request = "jobs cancel", "cancel"
    said = "is given up; what it has begun is removed"


def refuse_unrecorded(id_: str) -> None:
    """Raise EditRefused for a load that is due and not recorded."""
    if id_.startswith(UNASKED):
        way = f"`binlogd tables load {quoted_pattern(id_.removeprefix(UNASKED))}` records one"
        raise EditRefused(f"{id_} is no job yet: {way}")
