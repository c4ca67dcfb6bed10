"""What a fleet of daemons needs, and what it reaches first, from the costs of its parts. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bench.fit import least_squares
from bench.scaling.fleet import Run
from changes.sql.spark.write_strategy import BatchFacts, adds_by_job, deletes_by_job

CORES = (2, 8, 32, 128)
LARGEST = 10**11


@dataclass(frozen=True, slots=True)
class Costs:
    """Processor seconds of the daemons' processes, each for a message and for a write.

    ``lock_``: the part of it that one process's Python can't do twice at once. ``idle_s``: of a
    daemon, each second.
    """

    message_s: float
    write_s: float
    lock_message_s: float
    lock_write_s: float
    idle_s: float

    def predicted(self, run: Run) -> float:
        """What a run should have taken."""
        idle = self.idle_s * run.daemons * run.clock_s
        return run.messages * self.message_s + run.writes * self.write_s + idle


@dataclass(frozen=True, slots=True)
class Load:
    """So many changes a second of so many tables, each written once in so many seconds."""

    daemons: int
    changes_a_second: float
    tables: int
    written_every_s: float

    @property
    def writes_a_second(self) -> float:
        """Each is a commit; a table without changes has none."""
        return min(self.tables / self.written_every_s, self.changes_a_second)


@dataclass(frozen=True, slots=True)
class Needs:
    """Cores in all, and how much of one core each daemon's Python is held."""

    cores: float
    lock: float
    commits_a_second: float


def costs_of(runs: Sequence[Run], idle_s: float) -> Costs:
    """From runs with few and with many writes."""
    facts = [(run.messages, run.writes) for run in runs]
    idle = [idle_s * run.daemons * run.clock_s for run in runs]
    whole = [run.cpu_s - less for run, less in zip(runs, idle, strict=True)]
    message_s, write_s = least_squares(facts, whole)
    lock_message_s, lock_write_s = least_squares(facts, [run.main_s for run in runs])
    return Costs(message_s, write_s, lock_message_s, lock_write_s, idle_s)


def needs(costs: Costs, load: Load) -> Needs:
    """What a load takes where it is spread evenly."""
    writes, changes = load.writes_a_second, load.changes_a_second
    cores = changes * costs.message_s + writes * costs.write_s + load.daemons * costs.idle_s
    lock = (changes * costs.lock_message_s + writes * costs.lock_write_s) / load.daemons
    return Needs(cores, lock, writes)


def first_sizes() -> Iterator[tuple[str, list[int | None]]]:
    """From which size on a job wins, by the session's cores; None where it never does."""
    for stored in (0, 10**6, 10**7, 10**8, 10**9):
        name = "rows of new keys" if not stored else f"rows into {stored:,} stored"
        yield name, [first_batch(stored, cores) for cores in CORES]
    for rows in (10_000, 100_000, 1_000_000):
        yield f"stored rows, batch of {rows:,}", [first_stored(rows, cores) for cores in CORES]


def first_batch(stored: int, cores: int) -> int | None:
    """The smallest batch that a job writes: a new key's, or into so many stored rows."""

    def wins(rows: int) -> bool:
        facts = BatchFacts(not stored, rows=rows, stored=stored, cores=cores)
        return deletes_by_job(stored, facts) if stored else adds_by_job(facts)

    return _first(wins)


def first_stored(rows: int, cores: int) -> int | None:
    """The fewest rows in the files looked through for which a job finds those of a batch."""
    return _first(lambda stored: deletes_by_job(stored, BatchFacts(False, rows=rows, cores=cores)))


def _first(wins: object) -> int | None:
    assert callable(wins)
    if not wins(LARGEST):
        return None
    low, high = 0, LARGEST
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if wins(middle) else (middle, high)
    return high
