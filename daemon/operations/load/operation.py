"""``binlogd tables load``: records loads in the running daemon, and follows them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from daemon.config.pipeline_parts import LoadSection
from daemon.operations.engine.here import InDaemon
from daemon.operations.engine.operation import Done, Option
from daemon.operations.engine.port import JobKind, Plan
from daemon.operations.engine.record import Job, State
from daemon.operations.load.kind import LoadKind
from daemon.operations.load.of_tables import OfTables, TablesParams, followed
from settings.exit import Exit
from settings.shell import quoted


class LoadParams(TablesParams):
    """Which tables, and how."""

    wait: Annotated[bool, Option("Until the tables are there.", flag="--wait")] = False
    anew: Annotated[
        bool, Option("With the types of the stream, not of the old table.", flag="--anew")
    ] = False


class LoadOperation(OfTables[LoadParams]):
    """Fill tables from the source's own database, beside the stream. Status 2: refused."""

    words, params, example = "tables load", LoadParams, '"shop.order_*" --dry-run'
    needs_daemon = "the running daemon loads"
    planner = LoadKind()

    def kind(self, load: LoadSection | None) -> JobKind:
        """See ``Operation``."""
        return LoadKind(load)

    def asked(self, params: LoadParams) -> Mapping[str, object]:
        """See ``OfTables``."""
        return {"anew": True} if params.anew else {}

    def recorded(self, params: LoadParams, plan: Plan, here: InDaemon, jobs: list[Job]) -> Done:
        """See ``OfTables``."""
        here.say(*plan.lines)
        here.say(*(f"job {job.id} is recorded: binlogd jobs show {quoted(job.id)}" for job in jobs))
        status = Exit.OK
        for job in [followed(here, job) for job in jobs] if params.wait else ():
            if job.state is not State.DONE:
                here.note(f"job {job.id}: {job.state}: {job.message}")
                status = Exit.PIPELINE_FAILED
        return Done([{**each, "jobs": [job.id for job in jobs]} for each in plan.document], status)
