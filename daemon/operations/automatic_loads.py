"""Automatic loads: of tables that appear, and of targets that can't be followed."""

from __future__ import annotations

import glob
import json
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import structlog

from actors.runtime.backoff import Waits
from actors.runtime.files import make_private_folder, write_durably
from actors.runtime.periodic import Periodic
from changes.model.printable import reason_of
from daemon.config.pipeline_config import PipelineConfig
from daemon.config.pipelines import PipelineSection
from daemon.operations.engine.port import Look, Plan
from daemon.operations.engine.record import Job, JobRequest
from daemon.operations.engine.runner import JobRunner, JobsClosed
from daemon.operations.engine.thread import AWAY, REFUSED
from daemon.operations.figures import LoadRefused
from daemon.operations.load.kind import KIND, LoadKind
from daemon.operations.load.plan import FIRST_SIGHT, RELOAD
from offsets.snapshot import Snapshot
from settings.counted import counted
from settings.shell import quoted_pattern
from sources.base.port import NotAnswered

LOOK_EVERY_S = 10.0

REFUSED_S = 600.0
"""The longest time between two plans of a target whose load is refused, or can't be planned now."""

HOUR_MS = 3_600_000


def due(
    snapshot: Snapshot,
    section: PipelineSection,
    jobs: Iterable[Job],
    known: Collection[str],
    now_ms: int,
) -> Iterator[tuple[str, str]]:
    """The targets that are to be loaded now, each with why. ``known``: those that are not new."""
    own = [
        job for job in jobs if (job.wanted.kind, job.wanted.pipeline) == (KIND, snapshot.pipeline)
    ]
    under_way = {name for job in own if not job.state.is_final for name in job.wanted.targets}
    busy = under_way | snapshot.rebuilds.keys()
    stand_ins = {rebuild.into for rebuild in snapshot.rebuilds.values()}
    if "reload" in (section.on_refused_target, section.ddl.lossy_change):
        shut = {target for target, spill in snapshot.spills.items() if not spill.away}
        for target in sorted(shut - busy - stand_ins):
            if often(own, target, now_ms) < 3:
                yield target, RELOAD
    if section.load == "on-first-sight":
        new = written(snapshot) - busy - stand_ins - set(known)
        yield from ((name, FIRST_SIGHT) for name in sorted(new))


def loaded_by_hand(pipeline: str, jobs: Iterable[Job]) -> set[str]:
    """The targets of a pipeline for which a load is recorded: they need no other at first sight."""
    wanted = (job.wanted for job in jobs)
    loads = (one for one in wanted if (one.kind, one.pipeline) == (KIND, pipeline))
    return {target for one in loads for target in one.targets}


def often(jobs: Iterable[Job], target: str, now_ms: int) -> int:
    """How many reloads of a target were recorded in the last hour: after three it stays in
    quarantine."""
    return sum(
        job.wanted.origin == RELOAD
        and target in job.wanted.targets
        and job.created_ms > now_ms - HOUR_MS
        for job in jobs
    )


def due_offline(
    pipeline: PipelineConfig, snapshot: Snapshot, jobs: Iterable[Job]
) -> Iterator[LoadRefused]:
    """The loads that the next start plans, as far as files tell. Raises OSError, ValueError."""
    jobs, known = tuple(jobs), seen(pipeline.state_dir, pipeline.name)
    known = (written(snapshot) if known is None else known) | loaded_by_hand(pipeline.name, jobs)
    now_ms = time.time_ns() // 1_000_000
    for target, origin in due(snapshot, pipeline.section, jobs, known, now_ms):
        yield LoadRefused(pipeline.name, target, origin, "no daemon runs", None)


def written(snapshot: Snapshot) -> set[str]:
    """The targets that have got changes."""
    return {name for name, mark in snapshot.targets.items() if mark.hwms}


def seen(state_dir: Path, pipeline: str) -> set[str] | None:
    """The targets that are not new; None: loads at first sight were never looked for. Raises
    OSError, ValueError."""
    path = state_dir / "seen" / f"{pipeline}.json"
    return set(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else None


def remember(state_dir: Path, pipeline: str, known: Collection[str]) -> None:
    """Write down which targets are not new. Raises OSError."""
    folder = state_dir / "seen"
    make_private_folder(folder)
    write_durably(folder / f"{pipeline}.json", json.dumps(sorted(known), indent=1))


class AutomaticLoads:
    """A thread of its own: planning asks databases, which may be away."""

    def __init__(
        self,
        runner: JobRunner,
        look: Callable[[], Look],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``clock``: seconds."""
        self._runner = runner
        self._look = look
        self._reported: dict[str, str] = {}
        self._refused: dict[str, LoadRefused] = {}
        self._tries: dict[str, int] = {}
        self._rests_until: dict[str, float] = {}
        self._clock = clock
        self._rounds = Periodic(
            "automatic-loads", self.look, LOOK_EVERY_S, "jobs", "loads_not_looked_for"
        )
        self._log: Any = structlog.get_logger().bind(actor="jobs")

    def start(self) -> None:
        """Begin: a reload may want it of any pipeline."""
        self._rounds.start()

    def close(self) -> None:
        """Record no more. Returns at once; a planning under way is left behind."""
        self._rounds.close()

    def look(self) -> None:
        """Look at all pipelines once. On the thread."""
        for pipeline, section in self._look().config.pipeline.items():
            if not section.loads_unasked or self._rounds.closed:
                continue
            try:
                self.look_at(pipeline)
            except (JobsClosed, NotAnswered, *AWAY, *REFUSED) as error:
                reason = reason_of(error)
                self._log.warning("loads_not_looked_for", pipeline=pipeline, reason=reason)
            except Exception:
                # An unforeseen fault of one pipeline must not end the loads of the others.
                self._log.exception("loads_not_looked_for", pipeline=pipeline)

    def look_at(self, pipeline: str) -> None:
        """Record the loads that are due. Raises what planning raises."""
        look = self._look()
        state_dir = look.config.daemon.state_dir
        snapshot, known = look.snapshot(pipeline), seen(state_dir, pipeline)
        if known is None:
            # What is there when this is switched on has not just appeared.
            known = written(snapshot)
            remember(state_dir, pipeline, known)
        section, now_ms = look.config.pipeline[pipeline], time.time_ns() // 1_000_000
        if taken := loaded_by_hand(pipeline, self._runner.jobs) - known:
            known |= taken
            remember(state_dir, pipeline, known)
        found = dict(due(snapshot, section, self._runner.jobs, known, now_ms))
        self._forget(pipeline, found)
        for target, origin in found.items():
            if self._clock() < self._rests_until.get(target, 0.0):
                continue
            try:
                self._record(look, pipeline, target, origin)
            except (NotAnswered, *AWAY, *REFUSED) as error:
                self._rest(target)
                self._show(LoadRefused(pipeline, target, origin, reason_of(error), now_ms))
                fields = {"pipeline": pipeline, "target": target, "reason": reason_of(error)}
                self._log.warning("loads_not_looked_for", **fields)

    def comes(self, pipeline: str, snapshot: Snapshot) -> bool:
        """Whether a load at first sight is to be recorded soon: it is due, and no plan has refused
        it. Any thread. Raises OSError, ValueError."""
        look = self._look()
        section = look.config.pipeline[pipeline]
        known = seen(look.config.daemon.state_dir, pipeline) or set()
        jobs = self._runner.jobs
        known |= loaded_by_hand(pipeline, jobs)
        found = due(snapshot, section, jobs, known, time.time_ns() // 1_000_000)
        return any(why == FIRST_SIGHT and name not in self._refused for name, why in found)

    @property
    def refused(self) -> tuple[LoadRefused, ...]:
        """The loads that are due and that the last plan refused. Any thread."""
        return tuple(self._refused.values())

    def _show(self, refused: LoadRefused) -> None:
        before = self._refused.get(refused.target, refused)
        self._refused = self._refused | {refused.target: replace(refused, since_ms=before.since_ms)}

    def _forget(self, pipeline: str, due_now: Collection[str]) -> None:
        """What is not due any more is refused no more."""
        self._refused = {
            target: each
            for target, each in self._refused.items()
            if each.pipeline != pipeline or target in due_now
        }

    def _record(self, look: Look, pipeline: str, target: str, origin: str) -> None:
        """Plan the load, and record it unless the plan is refused: then it is planned again later.
        Raises what planning raises."""
        params = {"anew": True} if origin == RELOAD else {}
        asked = JobRequest(KIND, pipeline, (glob.escape(target),), params, origin)
        plan = LoadKind().plan(look, asked)
        if (why := _refusal(plan, look.config.load.max_rows_unasked)) is None:
            self._runner.add(plan.wanted[0]).result()
            self._tries.pop(target, None)
            self._log.info("load_recorded", pipeline=pipeline, target=target, origin=origin)
            return
        self._rest(target)
        self._show(LoadRefused(pipeline, target, origin, why, time.time_ns() // 1_000_000))
        if self._reported.get(target) != why:
            self._reported[target] = why
            way = f"binlogd tables load {quoted_pattern(target)}"
            fields = {"pipeline": pipeline, "target": target, "origin": origin}
            self._log.warning("not_loaded_unasked", **fields, reason=why, command=way)

    def _rest(self, target: str) -> None:
        """Plan it less and less often: a plan asks databases, and tries rights in sinks."""
        self._tries[target] = self._tries.get(target, 0) + 1
        wait_s = Waits(LOOK_EVERY_S, REFUSED_S).after(self._tries[target])
        self._rests_until[target] = self._clock() + wait_s


def _refusal(plan: Plan, most: int) -> str | None:
    """Why a plan of at most so many rows is not carried out; None: it is."""
    if plan.refusals:
        return plan.refusals[0]
    rows = sum(each["rows"] for each in plan.document["tables"])
    if rows > most:
        there = counted(rows, "row is", "rows are")
        return f"about {there} more than load.max_rows_unasked ({most:,})"
    return None
