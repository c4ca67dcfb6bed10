"""What every step of a load has at hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from daemon.jobs.load.memory import Filled, Memory
from daemon.jobs.load.ports import LoadSettings, Log, Tables
from daemon.jobs.port import Control
from daemon.jobs.record import Job
from offsets.load import Load
from offsets.snapshot import Snapshot


@dataclass(slots=True)
class Step:
    """One step. ``memory`` is changed in place, and remembered when the step is over."""

    job: Job
    control: Control
    memory: Memory
    tables: Tables
    log: Log
    settings: LoadSettings
    clock: Callable[[], float]

    @property
    def now_ms(self) -> int:
        """Unix milliseconds."""
        return int(self.clock() * 1000)

    @property
    def pipeline(self) -> str:
        """The pipeline whose targets are loaded."""
        return self.job.wanted.pipeline

    def snapshot(self) -> Snapshot:
        """What is recorded of it now."""
        return self.control.snapshot(self.pipeline)


def load_of(snapshot: Snapshot, target: str, filled: Filled, job: str) -> Load | None:
    """This job's recorded load of a target into its present table, None where there is none."""
    rebuild = snapshot.rebuilds.get(target)
    if rebuild is None or rebuild.cancelled or rebuild.into != filled.into:
        return None
    load = rebuild.load
    return load if load is not None and load.job == job else None
