"""``binlogd tables verify``: has the running daemon compare tables, and prints what differs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from rich.console import Console

from daemon.config.pipeline_parts import LoadSection
from daemon.operations.engine.here import Here, InDaemon
from daemon.operations.engine.operation import Done, Option
from daemon.operations.engine.port import JobKind, Plan
from daemon.operations.engine.record import Job, State
from daemon.operations.load.of_tables import OfTables, TablesParams, followed
from daemon.operations.verify.between.pairs import LIKE_THIS
from daemon.operations.verify.between.plan import plan_between
from daemon.operations.verify.job.kind import VerifyKind
from daemon.operations.verify.partition import Partition
from daemon.operations.verify.result_table import print_result
from daemon.state.edits import EditRefused
from settings.exit import Exit


class VerifyParams(TablesParams):
    """Which tables, and how."""

    sample: Annotated[
        float | None,
        Option("Compare a part of the ranges, such as 0.1.", least=0.000001, most=1),
    ] = None
    repair: Annotated[
        bool, Option("Write the rows that differ as the source has them.", flag="--repair")
    ] = False
    cut: Annotated[
        int | None, Option("Compare the tables as they are in this cut.", metavar="N", least=1)
    ] = None
    between: Annotated[
        bool,
        Option(
            "Compare two targets with each other: --between FIRST SECOND (patterns, or sinks).",
            flag="--between",
        ),
    ] = False
    partition: Annotated[
        str | None,
        Option(
            "Compare rows of a day or a range alone: COLUMN=DAY or COLUMN=FROM..TO.",
            metavar="CONDITION",
        ),
    ] = None

    def model_post_init(self, _: Any) -> None:
        """Refuse what does not go together."""
        if self.repair and self.cut is not None:
            raise EditRefused("--repair writes present rows: --cut only compares")
        if self.between:
            self._check_between()
        if self.partition is None:
            return
        if self.sample is not None:
            raise EditRefused("--partition compares all of its rows: leave --sample out")
        try:
            Partition.parse(self.partition)
        except ValueError as error:
            raise EditRefused(f"--partition: {error}") from None

    def _check_between(self) -> None:
        if len(self.targets) != 2:
            raise EditRefused(f"--between compares two with each other: {LIKE_THIS}")
        if self.repair:
            raise EditRefused(
                "--between says which rows differ, not which of the two is right: repair one from"
                " the source (`binlogd tables verify TARGET --repair`), or rebuild it"
            )
        if self.partition is not None:
            raise EditRefused("--between compares whole tables: leave --partition out")


class VerifyOperation(OfTables[VerifyParams]):
    """Compare tables with the source's own by value. Status 0: equal; 1: something differs."""

    words, params, example = "tables verify", VerifyParams, "lake.shop.orders --sample 0.1"
    needs_daemon = "tables are compared by the running daemon"
    planner = VerifyKind()

    def kind(self, load: LoadSection | None) -> JobKind:
        """See ``Operation``."""
        return self.planner

    def asked(self, params: VerifyParams) -> Mapping[str, object]:
        """See ``OfTables``."""
        return params.model_dump(exclude={"targets", "between"}, exclude_none=True)

    def plan(self, params: VerifyParams, here: Here) -> Plan:
        """See ``Operation``."""
        if not params.between:
            return super().plan(params, here)
        first, second = params.targets
        asked = dict(self.asked(params))
        return plan_between(here, self.planner.name, first, second, asked)

    def usable(self, plans: dict[str, Plan]) -> dict[str, Plan]:
        """Those of a table that can be compared."""
        return {n: plan for n, plan in plans.items() if plan.wanted[0].params.get("tables")}

    def recorded(self, params: VerifyParams, plan: Plan, here: InDaemon, jobs: list[Job]) -> Done:
        """See ``OfTables``."""
        status, ended = Exit.OK, [followed(here, job) for job in jobs]
        results = [msgspec.to_builtins(job.result) for job in ended]
        for job, result in zip(ended, results, strict=True):
            if job.state is not State.DONE:
                here.note(f"job {job.id}: {job.state}: {job.message}")
                status = Exit.UNUSABLE
            elif not result["equal"] and status is Exit.OK:
                status = Exit.PIPELINE_FAILED
        pairs = zip(ended, results, strict=True)
        return Done([{"job": j.id, "state": j.state.value, **r} for j, r in pairs], status)

    def show(self, console: Console, result: Any) -> None:
        """A table for each job that was carried out."""
        for each in result:
            if each.get("state") == State.DONE:
                print_result(console, each)
