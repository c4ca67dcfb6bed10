"""Runs the contestants of a workload in turns, each in a fresh catalog, and judges their tables."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from actors.runtime.jars import jars_folder
from actors.runtime.java import CHECKOUT
from bench.compare import report
from bench.compare.contestants import BASES, CONTESTANTS, Contestant, turns
from bench.compare.databases import Database
from bench.compare.expected import fold
from bench.compare.filled import FilledTopics
from bench.compare.job import Job
from bench.compare.lake import Lake, Prepare, Verdict, Verify, VerifyLoad
from bench.compare.places import Place, Served
from bench.compare.report import Entry, Results, Run, percentile
from bench.compare.run import NoFigure, Outcome, run_contestant
from bench.compare.sources import Source
from bench.compare.topic import LiveProducer
from bench.compare.workloads import Workload
from demo.produce import create_topic

TIME_BOX_S = 60.0
"""For those who would need hours; they say what they reached."""
_WITHIN_S = 1800.0


class _Place(NamedTuple):
    """Where one run is: a folder of its own, and the catalog."""

    folder: Path
    catalog: dict[str, str]


@dataclass
class Comparison:
    """Everything of it lies in ``var``, but for what ``place`` has elsewhere."""

    var: Path
    bootstrap: str
    cores: int
    place: Place
    say: Callable[[str], None]
    runs: int = 3
    """At most so many of each contestant."""
    contestants: Mapping[str, Contestant] = field(default_factory=lambda: CONTESTANTS)
    results: Results = field(default_factory=dict)
    _number: int = 0
    _here: Place = field(init=False)
    """Where the workload's tables are."""

    def __post_init__(self) -> None:
        self._topics = FilledTopics(self.bootstrap, self.var, self.say)

    def __enter__(self) -> Comparison:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if "_lake" in self.__dict__:
            self._lake.close()
        self._topics.close()

    @cached_property
    def _lake(self) -> Lake:
        """Started when it is first needed: not where nothing is written."""
        return Lake(self.var / "harness", self.place.extras)

    @property
    def is_sound(self) -> bool:
        """Whether nobody's tables differed, and binlogd itself has figures."""
        found = [entry for entries in self.results.values() for entry in entries.items()]
        return all(
            entry.equal is not False and (entry.runs or name not in BASES) for name, entry in found
        )

    def write(self, path: Path, scale: float) -> None:
        """Write what there is so far."""
        report.write(path, scale, self.results)

    def run(self, workload: Workload, repeats_until: float = math.inf) -> None:
        """Run everybody who takes part, once at least; again while it is not that late yet.

        ``repeats_until``: by the monotonic clock.
        """
        entries = self.results[workload.name] = {name: Entry() for name in workload.contestants}
        if _is_filled(workload):
            for name in workload.contestants:
                self._topics.fill(_read_by(self.contestants[name], workload))
        self._here = self._place_of(workload)
        try:
            self._prepare(workload)
            self._run_all(workload, entries, repeats_until)
        finally:
            self._here.close()
        report.add_ratios({workload.name: entries})

    def _place_of(self, workload: Workload) -> Place:
        if workload.database:
            return Database(self.var, workload)
        if workload.source:
            return Source(self.place, workload)
        return self.place

    def _run_all(self, workload: Workload, entries: dict[str, Entry], repeats_until: float) -> None:
        taking_part = [self.contestants[name] for name in workload.contestants]
        for contestant, number in turns(taking_part, min(self.runs, workload.runs)):
            entry = entries[contestant.name]
            late = number > 0 and time.monotonic() > repeats_until
            if late or entry.reason is not None:
                continue
            self.say(f"{workload.name}: {contestant.name}, run {number + 1}")
            try:
                self._one(workload, contestant, entry)
            except NoFigure as reason:
                entry.reason, entry.runs = str(reason), []
                self.say(f"  no figure: {reason}")

    def _job(self, workload: Workload, contestant: Contestant, run: _Place, topic: str) -> Job:
        return Job(
            workload=workload.name,
            format=workload.format,
            mode=workload.mode,
            bootstrap=self.bootstrap,
            topic=topic,
            end=workload.messages,
            ends=self._topics.ends.get(topic, {}),
            registry=self._topics.registry(workload),
            live=workload.per_second > 0,
            tables=workload.specs,
            catalog=run.catalog,
            prepared=_is_prepared(workload) and not contestant.makes_tables,
            folder=str(run.folder),
            jars=str(jars_folder().absolute()),
            peer_jars=str(CHECKOUT / "var" / "peers"),
            cores=self.cores,
            variant=contestant.variant,
            source=self._here.properties if isinstance(self._here, Source) else {},
            marker=f"run {self._number}" if workload.churn else "",
            time_box_s=TIME_BOX_S if contestant.time_boxed else None,
        )

    def _prepare(self, workload: Workload) -> None:
        """Have the workload's tables made, for each run to begin with."""

        def make(catalog: dict[str, str]) -> None:
            self._lake.prepare(Prepare(catalog, workload.specs, workload.preload))

        self._here.prepare(make if _is_prepared(workload) else None)

    def _one(self, workload: Workload, contestant: Contestant, entry: Entry) -> None:
        """One run. Raises NoFigure, also where the tables differ."""
        self._number += 1
        folder = self.var / f"{self._number}-{workload.name}-{contestant.name}"
        folder.mkdir()
        with self._here.lake(not contestant.makes_tables) as catalog:
            run = _Place(folder, catalog)
            outcome, served = self._measured(workload, contestant, run), self._here.served()
            verdict = Verdict([])
            if workload.sink:
                verdict = self._verdict(workload, run, outcome.reached)
        if workload.sink:
            entry.equal = not verdict.differences
            if verdict.differences:
                raise NoFigure("its tables differ: " + "; ".join(verdict.differences))
        entry.runs.append(_figures(workload, outcome, verdict, served))

    def _measured(self, workload: Workload, contestant: Contestant, run: _Place) -> Outcome:
        if _is_filled(workload):
            topic = _read_by(contestant, workload).topic
            job = self._job(workload, contestant, run, topic)
            return run_contestant(contestant.program, job, run.folder, _WITHIN_S)
        topic = f"{workload.name}-{self._number}"
        create_topic(self.bootstrap, topic)
        if workload.is_load:
            job = self._job(workload, contestant, run, topic)
            assert isinstance(self._here, Source)
            with self._here.changed(workload.churn, job.marker) as (begun, loaded):
                return run_contestant(contestant.program, job, run.folder, _WITHIN_S, begun, loaded)
        producer = LiveProducer(self.bootstrap, topic, workload)
        job = self._job(workload, contestant, run, topic)
        try:
            return run_contestant(contestant.program, job, run.folder, _WITHIN_S, producer.start)
        finally:
            producer.stop()

    def _verdict(self, workload: Workload, run: _Place, reached: int) -> Verdict:
        if isinstance(self._here, Database):
            return self._here.verdict(reached)
        if isinstance(self._here, Source) and workload.is_load:
            dump = str(self._here.dump)
            return self._lake.verify(VerifyLoad(run.catalog, workload.specs[0], dump))
        expected = run.folder / "expected"
        expected.mkdir()
        for table, rows in zip(workload.specs, fold(workload, reached), strict=True):
            columns = {"id": rows.keys, "version": rows.versions}
            arrays = {name: pa.array(values, pa.int64()) for name, values in columns.items()}
            pq.write_table(pa.table(arrays), expected / f"{table.name}.parquet")
        live = workload.per_second > 0
        return self._lake.verify(
            Verify(run.catalog, workload.specs, str(expected), workload.preload, live)
        )


def _read_by(contestant: Contestant, workload: Workload) -> Workload:
    """The workload as it is in the topics that the contestant reads."""
    return workload.in_one_partition if contestant.one_partition else workload


def _is_prepared(workload: Workload) -> bool:
    """A changelog has columns of each contestant's own; a loaded table is made by the load."""
    return workload.sink and workload.mode == "upsert" and not workload.is_load


def _is_filled(workload: Workload) -> bool:
    """Whether its topic is filled before the first run, and the same for all."""
    return not workload.per_second and not workload.source


def _number(figure: object) -> float | None:
    return float(figure) if isinstance(figure, float) else None


def _each_million(count: int | None, rows: int) -> int | None:
    return None if count is None else round(count / rows * 1e6)


def _figures(workload: Workload, outcome: Outcome, verdict: Verdict, served: Served | None) -> Run:
    rows = outcome.reached * workload.rows
    if not rows:
        raise NoFigure(f"nothing was visible after {outcome.seconds:.0f} s")
    delays = verdict.delays_s
    return Run(
        seconds=round(outcome.seconds, 3),
        rows=rows,
        reached=outcome.reached,
        rows_per_s=round(rows / outcome.seconds, 1),
        cpu_s_per_million=round(outcome.used.cpu_s / rows * 1e6, 2),
        rss_mb=round(outcome.used.rss_mb, 1),
        jvm_rss_mb=round(outcome.used.jvm_rss_mb, 1),
        scan_s=round(verdict.scan_s, 3) if workload.sink else None,
        requests_per_million=_each_million(served.requests if served else None, rows),
        lake_cpu_s_per_million=round(served.cpu_s / rows * 1e6, 2) if served else None,
        p50_s=percentile(delays, 0.50) if delays else None,
        p95_s=percentile(delays, 0.95) if delays else None,
        p99_s=percentile(delays, 0.99) if delays else None,
        read_rows_per_s=_number(outcome.figures.get("read_rows_per_s")),
        said=outcome.figures,
    )
