"""``tables load`` as a kind of job."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from daemon.config.pipeline_config import PipelineConfig
from daemon.config.pipeline_parts import LoadSection, Window
from daemon.operations.engine.port import (
    Advanced,
    Control,
    Finished,
    JobAway,
    JobStopped,
    Look,
    Outcome,
    Plan,
)
from daemon.operations.engine.record import Job, JobRequest
from daemon.operations.engine.requested import wrong_tables
from daemon.operations.engine.thread import AWAY
from daemon.operations.load.attempts import look, undo
from daemon.operations.load.log import PipelineLog
from daemon.operations.load.memory import LoadMemory, Step
from daemon.operations.load.plan import planned
from daemon.operations.load.rule import LoadSteps, new_memory
from daemon.operations.load.settings import settings_of
from daemon.operations.load.source_tables import SourceTables
from daemon.operations.rebuild.exchange import stays

KIND = "load"

HAD_NAME = "the new table had its name already"


class LoadKind:
    """See ``JobKind``. Connections and staged files of a job are kept from step to step."""

    name = KIND
    can_pause = True

    def __init__(self, section: LoadSection | None = None) -> None:
        """Without ``section`` it only plans."""
        section = LoadSection() if section is None else section
        self.concurrent = section.concurrent
        self.window = None if section.window is None else Window.parse(section.window)
        self._open: dict[str, SourceTables] = {}
        self._lock = threading.Lock()

    def plan(self, look: Look, wanted: JobRequest) -> Plan:
        """What would be loaded, and what it takes."""
        return planned(look, wanted)

    def wrong(self, wanted: JobRequest) -> Sequence[str]:
        """See ``JobKind``. ``rows``: the plan's estimates, by target."""
        rows = wanted.params.get("rows", {})
        known = isinstance(rows, dict) and all(type(each) is int for each in rows.values())
        estimates = () if known else ('"rows" has no number for each target',)
        return [*wrong_tables(wanted), *estimates]

    def step(self, job: Job, control: Control) -> Outcome:
        """See ``JobKind``."""
        if not job.memory:
            return Advanced(_first(job).json(), message="begins")
        pipeline = job.wanted.pipeline
        tables = self._tables(job, control)
        log = PipelineLog(control, pipeline)
        settings = settings_of(PipelineConfig(control.config, pipeline))
        steps = LoadSteps(tables, log, settings, time.time)
        outcome: Outcome | None = None
        try:
            outcome = steps.step(job, control)
            return outcome
        except (*AWAY, JobStopped):
            raise
        except Exception as error:
            # A load without a job would keep its tables from their changes, and nobody would know.
            self._given_up(job, control, error)
            raise
        finally:
            if not isinstance(outcome, Advanced):
                self._closed(job)

    def _given_up(self, job: Job, control: Control, error: Exception) -> None:
        """Undo it before it fails; where that can't be now, the step is repeated."""
        try:
            self._undone(self._look(job, control))
        except AWAY as away:
            raise JobAway(f"{error}; it is given up once this passes: {away}") from error

    def undo(self, job: Job, control: Control) -> str | Outcome:
        """Give all of it up: the old tables get what came meanwhile. What has its name by then is
        remembered first: once the rest is given up, the snapshot looks the same."""
        step = self._look(job, control)
        done = step.memory.at("done")
        if done and len(done) == len(step.memory.targets):
            return Finished({"rows": {name: each.rows for name, each in done.items()}}, HAD_NAME)
        if not step.memory.given_up:
            step.memory.given_up = True
            return Advanced(step.memory.json(), None, "is being given up")
        return self._undone(step)

    def _look(self, job: Job, control: Control) -> Step:
        self._closed(job)
        memory = LoadMemory.of(job.memory) if job.memory else _first(job)
        log = PipelineLog(control, job.wanted.pipeline)
        settings = settings_of(PipelineConfig(control.config, job.wanted.pipeline))
        tables = SourceTables(control, job.wanted.pipeline)
        step = Step(job, control, memory, tables, log, settings, time.time)
        look(step)
        return step

    def _undone(self, step: Step) -> str:
        memory, done = step.memory, step.memory.at("done")
        found = undo(step, set(memory.targets))
        said = [f"{', '.join(sorted(done))}: {HAD_NAME}"] if done else []
        if found:
            kept = "the table stays as it was, and gets what came meanwhile"
            said.append(f"{', '.join(found)}: {kept}")
        left = stays(step.snapshot(), memory.targets.keys() - done.keys())
        return ("; ".join(said) or "nothing of it is left") + left

    def _tables(self, job: Job, control: Control) -> SourceTables:
        with self._lock:
            if job.id not in self._open:
                anew = job.wanted.params.get("anew") is True
                self._open[job.id] = SourceTables(control, job.wanted.pipeline, anew=anew)
            return self._open[job.id]

    def _closed(self, job: Job) -> None:
        with self._lock:
            tables = self._open.pop(job.id, None)
        if tables is not None:
            tables.close()


def _first(job: Job) -> LoadMemory:
    tables = dict(zip(job.wanted.targets, job.wanted.params["tables"], strict=True))
    named = {target: tuple(str(table).split(".", 1)) for target, table in tables.items()}
    expected = job.wanted.params.get("rows", {})
    return new_memory(named, {name: int(rows) for name, rows in expected.items()})  # type: ignore[arg-type]
