"""A table that only warms a contestant up, beside those that are compared."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

from bench.compare.declared import created, dropped
from bench.compare.job import Job, TableSpec
from bench.compare.workloads import Workload
from databases.base.url import parse_url
from sparkwriter.sql.base.session import Session
from sparkwriter.sql.connect import connect

SCRATCH = "warm"
"""Its schema, or database."""


def warm_up_workload(job: Job, changes: int) -> Workload:
    """So many changes of the table."""
    return Workload("warm", "", changes, tables=1, format=job.format, per_second=int(job.live))


def session(job: Job) -> Session:
    """A connection to the job's database. Raises DatabaseError."""
    return connect(parse_url(job.catalog["url"]), job.catalog["user"], None)


@contextmanager
def scratch_table(job: Job) -> Iterator[None]:
    """The table ``t0`` in SCRATCH, until the end."""
    kind, spec = job.catalog["type"], job.tables[0]
    with closing(session(job)) as here:
        for statement in created(kind, SCRATCH, [TableSpec("t0", spec.columns, spec.key)]):
            here.run(statement)
        yield
        here.run(dropped(kind, SCRATCH))
