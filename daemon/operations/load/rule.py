"""The load's steps: names, begins, reads, looks for the end, follows, or begins again.

Each step is one edit, one group of fenced writes, or a look. What a step decides is remembered
before the next one acts on it, so each may be repeated.
"""

from __future__ import annotations

from collections.abc import Callable

from daemon.operations.engine.port import Advanced, Control, Finished, JobFailed, Outcome
from daemon.operations.engine.record import Job, JobProgress
from daemon.operations.load import attempts
from daemon.operations.load import copy as filling
from daemon.operations.load import finish as ending
from daemon.operations.load import start as beginning
from daemon.operations.load.memory import OPEN, Filled, LoadMemory, Step
from daemon.operations.load.ports import LoadLog, LoadSettings, Tables
from settings.counted import counted

LOOK_S = 2.0
"""Between two looks at what the pipeline has recorded, or at the log's end."""


class LoadSteps:
    """The steps of one job. One thread's."""

    def __init__(
        self, tables: Tables, log: LoadLog, settings: LoadSettings, clock: Callable[[], float]
    ) -> None:
        """``clock``: Unix seconds."""
        self._tables = tables
        self._log = log
        self._settings = settings
        self._clock = clock

    def step(self, job: Job, control: Control) -> Outcome:
        """The next step. See ``JobKind.step``."""
        memory = LoadMemory.of(job.memory)
        step = Step(job, control, memory, self._tables, self._log, self._settings, self._clock)
        message, wait_s = self._next(step)
        progress = _progress(memory)
        if not memory.at(*OPEN):
            return _over(memory, progress)
        return Advanced(memory.json(), progress, message, wait_s)

    def _next(self, step: Step) -> tuple[str, float]:
        """Do it: what comes next, and after how many seconds."""
        memory = step.memory
        known = memory.at("failing").keys()
        attempts.look(step)
        failing = memory.at("failing")
        if failing and failing.keys() == known:
            return attempts.give_up(step)
        if failing:  # remembered first: once it is given up, its record is gone as an ended one's
            return f"is given up: {', '.join(sorted(failing))}", 0.0
        if attempts.renew(step):
            return "begins again", 0.0
        if memory.at("new"):
            return beginning.name(step)
        if memory.at("named"):
            return beginning.begin(step)
        if memory.at("filling"):
            return filling.fill(step)
        if memory.at("filled"):
            return ending.end(step)
        if (held := attempts.exchange(step)) is not None:
            return held
        waiting = [f"{name}: {each.why}" for name, each in memory.at("again").items()]
        if waiting:
            return f"{waiting[0]}; begins again behind that", LOOK_S
        behind = ", ".join(sorted(memory.at("following")))
        return (f"the stream is applied over the rows of {behind}" if behind else ""), LOOK_S


def _progress(memory: LoadMemory) -> JobProgress:
    done = sum(each.rows for each in memory.targets.values())
    known = (max(each.expected, each.rows) for each in memory.targets.values())
    return JobProgress(done, sum(known), "rows")


def _over(memory: LoadMemory, progress: JobProgress) -> Finished:
    failed = {name: each.why for name, each in memory.at("failed").items()}
    if failed:
        told = "; ".join(f"{name}: {why}" for name, why in sorted(failed.items()))
        done = len(memory.targets) - len(failed)
        raise JobFailed(f"{told} ({done} of {len(memory.targets)} loaded)")
    rows = {name: each.rows for name, each in memory.targets.items()}
    by_time = sorted({source for each in memory.targets.values() for source in each.by_time})
    told = f"; the end in {', '.join(by_time)} was taken by time" if by_time else ""
    line = f"{counted(sum(rows.values()), 'row')} of {counted(len(rows), 'table')}{told}"
    return Finished({"rows": rows, "ends_by_time": by_time}, line, progress)


def new_memory(tables: dict[str, tuple[str, str]], expected: dict[str, int]) -> LoadMemory:
    """Of a job that has not begun: source tables and estimated rows, by target."""
    return LoadMemory(
        {name: Filled(table, expected=expected.get(name, 0)) for name, table in tables.items()}
    )
