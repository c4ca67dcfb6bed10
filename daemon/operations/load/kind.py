"""``tables load`` as a kind of job."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence

from changes.formats.auto import make_format
from changes.formats.recognise import TopicFormats
from daemon.config.config import Config
from daemon.config.pipeline_parts import Window
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
from daemon.operations.engine.record import Job, Wanted
from daemon.operations.engine.requested import wrong_tables
from daemon.operations.engine.source_watermarks import LogMoments, Passage
from daemon.operations.engine.thread import AWAY
from daemon.operations.load.attempts import look, undo
from daemon.operations.load.memory import Memory, Step
from daemon.operations.load.plan import planned
from daemon.operations.load.ports import LoadSettings
from daemon.operations.load.rule import LoadSteps, new_memory
from daemon.operations.load.source_tables import SourceTables
from daemon.operations.rebuild.exchange import stays
from offsets.position import TopicPartition
from sources.base.port import LogGone, NotAnswered

# The load's ``Log`` over a pipeline's source.


class PipelineLog:
    """See ``ports.Log``. One thread's."""

    def __init__(self, look: Look, pipeline: str) -> None:
        self._look = look
        self._pipeline = pipeline
        self._source = look.source(pipeline)

    def partitions(self) -> Sequence[TopicPartition]:
        """See ``Log``."""
        return self._source.questions().partitions(sorted(self._source.topic_ids()))

    def ends(self, sources: Sequence[TopicPartition]) -> Mapping[TopicPartition, int]:
        """See ``Log``."""
        marks = self._source.questions().watermarks(sources)
        return {source: marks[source].high for source in sources}

    def begins(self, sources: Sequence[TopicPartition]) -> Mapping[TopicPartition, int]:
        """See ``Log``."""
        return self._source.questions().begins(sources)

    def passed(
        self, scanned: Mapping[TopicPartition, int], after_ms: int
    ) -> tuple[Mapping[TopicPartition, int], Mapping[TopicPartition, int]]:
        """See ``Log``. What the log has lost meanwhile is passed over: a later message proves the
        same."""
        try:
            found = self._moments(list(scanned)).followed(Passage(after_ms, dict(scanned)))
        except LogGone as error:
            begins = self._source.questions().begins(sorted(scanned))
            left = {source: max(at, begins[source]) for source, at in scanned.items()}
            if left == dict(scanned):
                raise JobAway(str(error)) from error
            return {}, left
        except NotAnswered as error:
            raise JobAway(str(error)) from error
        return found.ends, found.at

    def _moments(self, sources: list[TopicPartition]) -> LogMoments:
        section = self._look.config.pipeline[self._pipeline]
        topics = TopicFormats(self._look.snapshot(self._pipeline).formats)
        format_ = make_format(section.format, section.format_options(), topics)
        source = self._source
        return LogMoments(format_, source.questions(), source.reader(), sources)


KIND = "load"

HAD_NAME = "the new table had its name already"


class LoadKind:
    """See ``JobKind``. Connections and staged files of a job are kept from step to step."""

    name = KIND
    can_pause = True

    def __init__(self, config: Config | None = None) -> None:
        """Without ``config`` it only plans."""
        section = None if config is None else config.load
        self.concurrent = 1 if section is None else section.concurrent
        hours = None if section is None else section.window
        self.window = None if hours is None else Window.parse(hours)
        self._open: dict[str, SourceTables] = {}
        self._lock = threading.Lock()

    def plan(self, look: Look, wanted: Wanted) -> Plan:
        """What would be loaded, and what it takes."""
        return planned(look, wanted)

    def wrong(self, wanted: Wanted) -> Sequence[str]:
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
        steps = LoadSteps(tables, log, settings_of(control.config, pipeline), time.time)
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
            self.undo(job, control)
        except AWAY as away:
            raise JobAway(f"{error}; it is given up once this passes: {away}") from error

    def undo(self, job: Job, control: Control) -> str | Finished:
        """Give all of it up: the old tables get what came meanwhile."""
        self._closed(job)
        memory = Memory.of(job.memory) if job.memory else _first(job)
        log = PipelineLog(control, job.wanted.pipeline)
        settings = settings_of(control.config, job.wanted.pipeline)
        tables = SourceTables(control, job.wanted.pipeline)
        step = Step(job, control, memory, tables, log, settings, time.time)
        look(step)
        done = memory.at("done")
        if done and len(done) == len(memory.targets):
            return Finished({"rows": {name: each.rows for name, each in done.items()}}, HAD_NAME)
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


def settings_of(config: Config, pipeline: str) -> LoadSettings:
    """The configuration's, with the bounds of the pipeline's databases."""
    section = config.load
    names = {name for _, name in config.pipeline[pipeline].named_databases()}
    databases = [config.database[name] for name in sorted(names)]
    rates = [section.rows_per_s, *(found.rows_per_s for found in databases)]
    bounded = [rate for rate in rates if rate is not None]
    return LoadSettings(
        margin_s=section.margin_s,
        settle_s=section.settle_s,
        idle_s=section.idle_s,
        chunk_rows=section.chunk_rows,
        parallel=min((found.connections for found in databases), default=1),
        rows_per_s=min(bounded, default=None),
        attempts_per_hour=section.attempts_per_hour,
    )


def _first(job: Job) -> Memory:
    tables = dict(zip(job.wanted.targets, job.wanted.params["tables"], strict=True))
    named = {target: tuple(str(table).split(".", 1)) for target, table in tables.items()}
    expected = job.wanted.params.get("rows", {})
    return new_memory(named, {name: int(rows) for name, rows in expected.items()})  # type: ignore[arg-type]
