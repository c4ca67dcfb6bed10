"""How a batch is written: which of the ways is right for it, and of these the cheapest. Pure.

What is small is done beside Spark: a job costs a second before it reads the first row. What is
large is done by the session's cores, of which a cluster has many. Figures are in docs/scaling.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

SEEK_ROW_S = 26e-9
"""One thread of ours looks through a stored key."""
SEEK_TABLE_ROW_S = 0.3e-6
"""It puts a key of the batch into its lookup table, which is built again for each file, and for
each million rows of it."""
SEEK_BATCH_ROW_S = 1.0e-6
"""It looks a key of the batch up, and makes the deletion of its row."""
JOB_S = 1.1
"""A job that deletes rows is planned, compiled, scheduled and committed."""
JOB_ROW_S = 160e-9
"""One core of the session looks through a stored key."""
JOB_BATCH_ROW_S = 3.0e-6
"""One core joins a key of the batch, and makes the deletion of its row."""
LAY_ROW_S = 0.4e-6
"""One thread of ours lays a row of the batch into a file of the table."""
INSERT_S = 0.3
"""A job that adds rows is planned, compiled, scheduled and committed."""
INSERT_ROW_S = 2.0e-6
"""One core of the session adds a row of the batch."""
ROWS_A_TASK = 1 << 17
"""Rows of a batch for one task of a job: staged files have groups of so many, which a task reads
whole. Fewer: a batch that one thread lays in 50 ms would be cut up. More: a million rows, which is
a large batch, would be the work of a few cores."""


class WriteWay(Enum):
    """A way to write a batch, from the cheapest to the dearest."""

    APPEND = "append"
    """Nothing stored can have one of the keys: its rows are added, as one file, without a job."""
    VECTOR = "vector"
    """We find the stored rows of its keys in the key columns of the files that may hold them, and
    delete them by deletion vectors; its rows are added as one file; without a job."""
    REPLACE = "replace"
    """One job finds and deletes the stored rows of its keys, reading key columns only; then its
    rows are added as one file."""
    INSERT = "insert"
    """As APPEND, by a job: for many rows and many cores, and for what a file of ours can't be, such
    as a partitioned table."""
    JOBS = "jobs"
    """As REPLACE, and a second job adds the rows: for many rows and many cores."""
    MERGE = "merge"
    """One statement that reads and joins all columns: rows take over what they lack."""


@dataclass(frozen=True, slots=True)
class BatchFacts:
    """What decides.

    ``known_new``: for sure no stored row has one of the keys, or keys mean nothing. ``partial``:
    why a row is not whole as the file has it, ``special``: why the table can't take a file that
    its engine did not write; None where neither is so. ``stored``: rows in the files that may hold
    one of the keys, by their metadata; None where that is not ours to look through. ``files``: how
    many files these are. ``rows``: those of the batch. ``cores``: tasks that the session runs at
    once on other machines, one where there are none.
    """

    known_new: bool
    partial: str | None = None
    special: str | None = None
    stored: int | None = None
    files: int = 1
    rows: int = 0
    cores: int = 1


def tasks_for(rows: int, cores: int) -> int:
    """How many tasks of a job share the rows of a batch."""
    return min(cores, 1 + rows // ROWS_A_TASK)


def choose(facts: BatchFacts) -> WriteWay:
    """The cheapest way that is right."""
    by_job = adds_by_job(facts)
    if facts.known_new:
        ours = facts.partial is None and facts.special is None and not by_job
        return WriteWay.APPEND if ours else WriteWay.INSERT
    if facts.partial is not None or facts.special is not None:
        return WriteWay.MERGE
    if facts.stored is not None and not deletes_by_job(facts.stored, facts):
        return WriteWay.VECTOR
    return WriteWay.JOBS if by_job else WriteWay.REPLACE


def adds_by_job(facts: BatchFacts) -> bool:
    """Whether the session's cores add the batch's rows sooner than one thread of ours."""
    return _adding_s(facts) < facts.rows * LAY_ROW_S


def _adding_s(facts: BatchFacts) -> float:
    return INSERT_S + facts.rows * INSERT_ROW_S / tasks_for(facts.rows, facts.cores)


def deletes_by_job(stored: int, facts: BatchFacts) -> bool:
    """Whether the session's cores find and delete the stored rows sooner than one thread of ours,
    all that follows from it included: a vector goes with a file that we lay."""
    tables = facts.files + (stored >> 20)
    each_s = tables * SEEK_TABLE_ROW_S + SEEK_BATCH_ROW_S + LAY_ROW_S
    ours = stored * SEEK_ROW_S + facts.rows * each_s
    batch_s = facts.rows * JOB_BATCH_ROW_S / tasks_for(facts.rows, facts.cores)
    theirs = JOB_S + stored * JOB_ROW_S / facts.cores + batch_s
    return theirs + min(_adding_s(facts), facts.rows * LAY_ROW_S) < ours
