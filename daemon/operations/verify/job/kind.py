"""``tables verify`` as a kind of job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import structlog

from changes.model.errors import TargetRefused
from daemon.config.pipeline_config import PipelineConfig
from daemon.config.pipeline_parts import Window
from daemon.operations.engine.port import Advanced, Control, Finished, Look, Outcome, Plan
from daemon.operations.engine.record import Job, JobProgress, JobRequest
from daemon.operations.engine.requested import wrong_tables
from daemon.operations.engine.source_targets import Chosen, Compared, chosen, named, unmatched
from daemon.operations.verify.at_cut import CUT, AtCut, at_cut, read_cut
from daemon.operations.verify.between.pairs import (
    BETWEEN,
    LONE,
    UNFIT,
    OtherSide,
    filled,
    other_of,
)
from daemon.operations.verify.between.run import PairRun
from daemon.operations.verify.columns import NotComparable
from daemon.operations.verify.in_flight_here import Interrupted
from daemon.operations.verify.partition import PARTITION, Partition
from daemon.operations.verify.repair import Repair
from daemon.operations.verify.report import Repaired, result_of, skipped, summary, table_result
from daemon.operations.verify.run import Changed, TableRun, now_ms
from daemon.operations.verify.work import RESTARTS, Table, Work
from daemon.state.edits import EditRefused
from databases.base.errors import DatabaseRefused

KIND = "verify"

log: Any = structlog.get_logger(__name__)


class VerifyKind:
    """See ``JobKind``."""

    name = KIND
    concurrent = 1
    can_pause = True
    window: Window | None = None

    def plan(self, look: Look, wanted: JobRequest) -> Plan:
        """Which tables would be compared. ``wanted.targets`` are patterns, the plan's targets."""
        pipeline = wanted.pipeline
        if not look.config.pipeline[pipeline].named_databases():
            line = f'pipeline {pipeline}: set database = "NAME", of a [database.NAME] with its url'
            return Plan((wanted,), refusals=(line,))
        found = chosen(PipelineConfig(look.config, pipeline), wanted.targets)
        try:
            cut = _in_cut(look, wanted, found)
        except EditRefused as error:
            return Plan((wanted,), refusals=tuple(map(look.config.redactor.text, error.lines)))
        missing = unmatched(wanted.targets, found)
        refusals = [
            f"{pattern}: no table of pipeline {pipeline} is called so" for pattern in missing
        ]
        partition = wanted.params.get(PARTITION)
        of = "" if partition is None else f", rows of {partition} alone"
        lines = [f"{one.target}: is compared with {one.table} of {one.database}{of}"
                 for one in found.tables]  # fmt: skip
        lines += [f"{name}: is not compared: {why}" for name, why in found.refused]
        if not found.tables and not missing:
            refusals = lines
        targets = tuple(str(one.target) for one in found.tables)
        # A partition has no ranges of which some could be chosen.
        sample = 1.0 if partition is not None else look.config.pipeline[pipeline].verify.sample
        params = {
            "sample": sample,
            **wanted.params,
            "tables": [str(one.table) for one in found.tables],
            **cut,
        }
        whole = replace(wanted, targets=targets, params=params)
        document = {
            "targets": list(targets),
            "refused": dict(found.refused),
            "patterns": [pattern for pattern in wanted.targets if pattern not in missing],
        }
        if partition is not None:
            document[PARTITION] = partition
        return Plan((whole,), tuple(lines), document, tuple(refusals))

    def wrong(self, wanted: JobRequest) -> Sequence[str]:
        """See ``JobKind``."""
        sample = wanted.params.get("sample")
        known = isinstance(sample, int | float) and not isinstance(sample, bool)
        wrong = [] if known else ['"sample" is no number']
        try:
            if (cut := wanted.params.get(CUT)) is not None:
                AtCut.of(cut)
        except (KeyError, TypeError, ValueError) as error:
            wrong.append(f'"{CUT}" is none: {error!r}')
        try:
            if (partition := wanted.params.get(PARTITION)) is not None:
                Partition.parse(str(partition))
        except ValueError as error:
            wrong.append(f'"{PARTITION}" is none: {error}')
        try:
            others = wanted.params.get(BETWEEN)
            found = wanted.targets if others is None else list(map(OtherSide.of, others))
            if len(found) != len(wanted.targets):
                wrong.append(f'"{BETWEEN}" has not one target for each')
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            wrong.append(f'"{BETWEEN}" is none: {error!r}')
        return [*wrong_tables(wanted), *wrong]

    def step(self, job: Job, control: Control) -> Outcome:
        """Do the next part of the present table, or begin the next one."""
        work, wanted = Work.of(job.memory), job.wanted
        if len(work.done) == len(wanted.targets):
            sample, cut = float(wanted.params["sample"]), wanted.params.get(CUT)
            left = [skipped(one["target"], "", one["why"]) for one in wanted.params.get(UNFIT, ())]
            result = result_of([*work.done, *left], sample, cut, wanted.params.get(PARTITION))
            if (lone := wanted.params.get(LONE)) is not None:
                result["only_one_side"] = lone
            return Finished(result, summary(result), _progress(work))
        place = len(work.done)
        table = work.table or Table(now_ms())
        target, source = wanted.targets[place], str(wanted.params["tables"][place])
        other = other_of(wanted, place)
        try:
            if other is not None:
                return self._pair_advanced(job, control, other, work, table)
            compared = named(PipelineConfig(control.config, wanted.pipeline), target, source)
            return self._advanced(job, control, compared, work, table)
        except Interrupted:
            return Advanced(job.memory, message="")
        except Changed:
            if table.restarts < RESTARTS:
                again = replace(work, table=table.again())
                message = f"{target}: begins again, for its table was changed"
                return Advanced(again.document(), message=message)
            why = "its table's definition changes all the time"
        except (NotComparable, DatabaseRefused, TargetRefused, ValueError) as error:
            why = str(error)
        done = work.ended(skipped(target, source, why, None if other is None else other.target))
        return Advanced(done.document(), _progress(done), f"{target}: {why}")

    def _advanced(
        self, job: Job, control: Control, compared: Compared, work: Work, table: Table
    ) -> Outcome:
        if not table.is_compared:
            now = TableRun(job, control, compared, work.source_rows).advance(table)
            return Advanced(
                replace(work, table=now).document(), message=f"compares {compared.target}"
            )
        target, source = str(compared.target), str(compared.table)
        fixed = Repaired()
        if table.found and job.wanted.params.get("repair") is True and not table.is_full:
            fixed = Repair(
                job, control, TableRun(job, control, compared, work.source_rows), table
            ).carried_out()
        return _ended(job, work, table_result(target, source, table, now_ms(), fixed))

    def _pair_advanced(
        self, job: Job, control: Control, other: OtherSide, work: Work, table: Table
    ) -> Outcome:
        """The same of a target that is compared with another one."""
        first = filled(control, job.wanted.pipeline, job.wanted.targets[len(work.done)])
        second = filled(control, other.pipeline, other.target)
        target = str(first.target)
        if not table.is_compared:
            now = PairRun(job, control, (first, second), work.source_rows).advance(table)
            message = f"compares {target} with {other.target}"
            return Advanced(replace(work, table=now).document(), message=message)
        result = table_result(target, str(first.table), table, now_ms(), between=other.target)
        return _ended(job, work, result)

    def undo(self, job: Job, control: Control) -> str:
        """Nothing is left of a comparison; rows that were repaired stay so."""
        return "is given up; it has changed only the rows that it reports"


def _ended(job: Job, work: Work, result: Mapping[str, Any]) -> Advanced:
    """A table is done: the log says so, and the next one follows."""
    tell = log.info if result["equal"] else log.warning
    told = {name: result[name] for name in ("target", "rows", "differing", "seconds")}
    if (partition := job.wanted.params.get(PARTITION)) is not None:
        told[PARTITION] = partition
    if result["between"] is not None:
        told[BETWEEN] = result["between"]
    tell("table_verified", undecided=len(result["undecided"]), **told)
    done = work.ended(result)
    return Advanced(done.document(), _progress(done), f"{result['target']}: is done")


def _in_cut(look: Look, wanted: JobRequest, found: Chosen) -> dict[str, object]:
    """The job's parameter of the requested cut. A table that is not in it is told in the result.
    Raises EditRefused."""
    number = wanted.params.get("cut")
    if number is None:
        return {}
    pipeline = PipelineConfig(look.config, wanted.pipeline)
    cut = read_cut(pipeline, int(number))
    return {CUT: at_cut(cut, [one.target for one in found.tables], pipeline.versioned).document()}


def _progress(work: Work) -> JobProgress:
    return JobProgress(work.source_rows, None)
