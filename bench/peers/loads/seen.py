"""What a contestant that loads a changing table waits for: rows as readers of the lake see them.

DuckDB looks every half second; a look takes some milliseconds.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from bench.compare.job import CATALOG, NAMESPACE, Job
from changes.model.model import TargetName
from sparkwriter.iceberg.queries import LakeQueries
from sparkwriter.kit.queries import NoAnswer

_LOOK_EVERY_S = 0.5


def await_rows(job: Job, check: Callable[[], None]) -> None:
    """Return when the table has all rows that were there before. ``check``, called at each look,
    raises where that can't come any more."""
    _await(job, f"SELECT count(*) >= {job.end} FROM", check)


def await_marker(job: Job, check: Callable[[], None]) -> None:
    """Return when the table has the last change; ``check`` as before."""
    _await(job, f"SELECT max(name) = '{job.marker}' FROM", check, " WHERE id = 0")


def _await(job: Job, select: str, check: Callable[[], None], where: str = "") -> None:
    target = TargetName(CATALOG, NAMESPACE, job.tables[0].name)
    queries = LakeQueries(CATALOG, job.catalog)
    while not _answer(queries, f"{select} {queries.spell(target)}{where}", target):
        check()
        time.sleep(_LOOK_EVERY_S)


def _answer(queries: LakeQueries, sql: str, target: TargetName) -> bool:
    try:
        with queries.answer(sql, [target], None) as answer:
            ((found,),) = answer.rows
    except NoAnswer:  # there is no such table yet
        return False
    return bool(found)
