"""Operations on tables of the source that patterns choose, in each pipeline that has them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, ClassVar, TypeVar

from daemon.operations.engine.here import Here, InDaemon
from daemon.operations.engine.operation import Done, Operation, Option, Params, say_plan
from daemon.operations.engine.paused import pauses_of
from daemon.operations.engine.port import JobKind, Plan
from daemon.operations.engine.record import Job, JobRequest
from daemon.operations.engine.requested import written_by
from daemon.state.control import ControlError
from daemon.state.pauses import paused_by_a_person
from settings.counted import counted
from settings.exit import Exit
from settings.shell import quoted

LOOK_EVERY_S = 0.5
"""Between two looks at a job that is followed."""


class TablesParams(Params):
    """Which tables."""

    targets: Annotated[
        list[str],
        Option("Targets, or tables of the source; * and ? stand for any signs.", argument=True),
    ]


P = TypeVar("P", bound=TablesParams)


class OfTables(Operation[P]):
    """What loads and verifications have in common: a job for each pipeline, which may be followed.

    Plans are made without a daemon, too; the running daemon carries them out.
    """

    plans_offline, plain_json = True, True
    undone_by = "jobs cancel"
    planner: ClassVar[JobKind]

    @abstractmethod
    def asked(self, params: P) -> Mapping[str, object]:
        """What the kind's plan gets beside the patterns."""

    def usable(self, plans: dict[str, Plan]) -> dict[str, Plan]:
        """The plans that count, where some do."""
        return plans

    def plan(self, params: P, here: Here) -> Plan:
        """A plan of each pipeline that has one of the tables; if none has, all their refusals."""
        kind, asked = self.planner, dict(self.asked(params))
        plans = {
            name: kind.plan(here, JobRequest(kind.name, name, tuple(params.targets), asked))
            for name in here.config.pipeline
        }
        found = list(together(self.usable(plans) or plans, params.targets).values())
        jobs = tuple(wanted for plan in found for wanted in plan.wanted)
        written = (target for wanted in jobs for target in written_by(wanted))
        paused = pauses_of(here).now()
        return Plan(
            wanted=jobs,
            lines=tuple(line for plan in found for line in plan.lines),
            document=[dict(plan.document) for plan in found],
            refusals=(
                *(line for plan in found for line in plan.refusals),
                *(paused_by_a_person(target) for target in written if target in paused),
            ),
        )

    def step(self, params: P, here: Here) -> Done:
        """Record the jobs."""
        plan = self.plan(params, here)
        if plan.refusals:
            say_plan(plan, here)
            return Done(plan.document, Exit.UNUSABLE)
        daemon = here.daemon
        return self.recorded(params, plan, daemon, [daemon.add_job(one) for one in plan.wanted])

    @abstractmethod
    def recorded(self, params: P, plan: Plan, here: InDaemon, jobs: list[Job]) -> Done:
        """The jobs are recorded: say so, and follow them where that was requested."""


def together(plans: Mapping[str, Plan], patterns: Sequence[str]) -> dict[str, Plan]:
    """The plans, by pipeline, of those that have one of the tables: what one has, the others need
    not.

    All of them where none has; where a pattern is nobody's, each is refused for that.
    """
    usable = {name: plan for name, plan in plans.items() if plan.document.get("patterns")}
    if not usable:
        return dict(plans)
    chosen = {one for plan in usable.values() for one in plan.document["patterns"]}
    left = tuple(f"{one}: no table is called so" for one in patterns if one not in chosen)
    if left:
        return {name: Plan((), refusals=left) for name in list(usable)[:1]}
    others = tuple(f"{one}: no table of pipeline" for one in patterns)
    return {
        name: replace(
            plan, refusals=tuple(line for line in plan.refusals if not line.startswith(others))
        )
        for name, plan in usable.items()
    }


def followed(here: InDaemon, job: Job) -> Job:
    """Wait for a job's end, and say how far it is. Leaving (Ctrl-C) leaves the job as it is."""
    said = ""
    while True:
        found = next((each for each in here.jobs if each.id == job.id), None)
        if found is None:
            raise ControlError(f"job {job.id} is not listed any more: raise jobs.keep")
        line = f"{job.id}: {found.state}, {counted(found.progress.done, 'row')}: {found.message}"
        if line != said:
            said = line
            here.say(line)
        if found.state.is_final:
            return found
        if here.wait(LOOK_EVERY_S):
            raise ControlError(f"job {job.id} continues: `binlogd jobs show {quoted(job.id)}`")
