"""``binlogd offsets reset``: the operation, on the running daemon or on what is recorded."""

from __future__ import annotations

from daemon.config.pipeline_config import PipelineConfig
from daemon.operations.engine.here import Here
from daemon.operations.engine.operation import Done, Operation, say_plan
from daemon.operations.engine.port import Plan
from daemon.operations.reset.offset_reset import (
    ResetParams,
    describe,
    make_plan,
    move_group,
    refuse_members,
)
from daemon.state.edits import EditRefused, chosen_pipeline
from offsets.reset import ResetPlan
from offsets.snapshot import Snapshot
from offsets.store import StoreError
from settings.exit import Exit


class ResetOperation(Operation[ResetParams]):
    """Read again from an earlier position, or skip to a later one: group and targets together.

    On the running daemon, or on what is recorded of a stopped one. Status 2: refused.
    """

    words, params, loses = "offsets reset", ResetParams, True
    example = "--to earliest --table lake.shop.orders"

    def plan(self, params: ResetParams, here: Here) -> Plan:
        """What would be moved, and what would be lost by it."""
        pipeline = self._pipeline(params, here)
        return _shown(make_plan(pipeline, here.snapshot(pipeline.name), params), params.force)

    def step(self, params: ResetParams, here: Here) -> Done:
        """Plan it once more while the pipeline stands still, and carry that out."""
        pipeline, plans = self._pipeline(params, here), list[ResetPlan]()
        name = pipeline.name
        if here.running and self._only_says_plan(params, here, pipeline):
            plan = self.plan(params, here)
            say_plan(plan, here)
            return Done(plan.document, Exit.UNUSABLE if plan.refusals else Exit.OK)

        def change(recorded: Snapshot) -> Snapshot:
            plans.append(make_plan(pipeline, recorded, params))
            refuse_members(here.source(name), pipeline.group)
            if not _allowed(plans[-1], params.force):
                raise EditRefused(*plans[-1].refusals, *plans[-1].losses)
            return plans[-1].snapshot

        try:
            here.edit(name, change)
        except EditRefused:
            if not plans or _allowed(plans[-1], params.force):
                raise
            plan = _shown(plans[-1], params.force)
            say_plan(plan, here)
            return Done(plan.document, Exit.UNUSABLE)
        plan = _shown(plans[-1], params.force)
        if not here.running:
            say_plan(plan, here)
            self._move_group(here, pipeline, plans[-1])
            return Done(plan.document)
        here.say(*describe(plans[-1]), f"done; pipeline {name} runs again")
        return Done(plan.document)

    def _pipeline(self, params: ResetParams, here: Here) -> PipelineConfig:
        name = chosen_pipeline(here.config.pipeline, params.pipeline)
        pipeline = PipelineConfig(here.config, name)
        if not pipeline.section.remembers:
            raise EditRefused(
                f"pipeline {name} has no store that keeps a snapshot (file, kafka-topic), and "
                "marks can't be moved by the group's commit"
            )
        return pipeline

    def _only_says_plan(self, params: ResetParams, here: Here, pipeline: PipelineConfig) -> bool:
        """Whether the plan is all that is to be said, so that a pipeline is not stopped in vain.
        One that has stopped is started again even if nothing is to be moved."""
        name = pipeline.name
        stages = {p["pipeline"]: p["stage"] for p in here.daemon.lent.status()["pipelines"]}
        stands = stages.get(name) == "ended"
        plan = make_plan(pipeline, here.snapshot(name), params)
        if (plan.nothing and not stands) or not _allowed(plan, params.force):
            return True
        # A stopped pipeline has left the group; a running one is a member itself.
        source = here.source(name)
        own = 0 if stands or source.own_instance() else 1
        refuse_members(source, pipeline.group, own)
        here.note(f"pipeline {name} is stopped, changed and started again")
        return False

    def _move_group(self, here: Here, pipeline: PipelineConfig, plan: ResetPlan) -> None:
        try:
            move_group(pipeline, plan.snapshot)
        except StoreError as error:
            here.note(f"warning: the group's commit is not moved yet: {error}")
        if not plan.nothing:
            here.say("recorded; the next start moves the targets' marks before it reads anything")


def _shown(plan: ResetPlan, force: bool) -> Plan:
    """For people. What is lost refuses it, or is a warning."""
    if plan.nothing and not plan.refusals and not plan.losses:
        return Plan(lines=("nothing to do: all is at that position already",), nothing=True)
    lines, against = tuple(describe(plan)), (*plan.refusals, *plan.losses)
    if _allowed(plan, force):
        return Plan(lines=lines, notes=tuple(f"warning: {line}" for line in against))
    refusals = tuple(f"refused: {line}" for line in against)
    forced = ("--force accepts what is lost",) if not plan.refusals else ()
    return Plan(lines=lines, refusals=refusals + forced)


def _allowed(plan: ResetPlan, force: bool) -> bool:
    return not plan.refusals and (force or not plan.losses)
