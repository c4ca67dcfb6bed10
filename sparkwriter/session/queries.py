"""Reads checksums, and rows as canonical texts, of a stored table, with Spark's SQL."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pyarrow as pa
from pyspark import InheritableThread
from pyspark.sql import SparkSession

from sparkwriter.session.requests import NotWanted

LOOK_UP_S = 0.5
"""How often a running query checks whether it was cancelled."""

_SETTINGS = {
    # Instants are printed in the session's zone, and a name with ${…} is that name.
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.variable.substitute": "false",
    # Groups are few: as many tasks as there would be by default only wait for each other.
    "spark.sql.shuffle.partitions": "8",
}


class SparkQueries:
    """Queries of one session of its own. One thread's."""

    def __init__(self, spark: SparkSession, asked: Callable[[], bool]) -> None:
        """``asked``: whether the caller has to stop; from then on queries end with NotWanted."""
        self._spark = spark.newSession()
        for name, value in _SETTINGS.items():
            self._spark.conf.set(name, value)
        self._asked = asked

    def ask(self, sql: str, what: str) -> list[tuple[Any, ...]]:
        """The rows that a SELECT gives, all at once. ``what`` names it in Spark's own pages.

        Raises NotWanted, and what Spark raises.
        """
        query = _Query(self._spark, sql, what)
        query.thread.start()
        while query.thread.is_alive():
            query.thread.join(LOOK_UP_S)
            if query.thread.is_alive() and self._asked():
                query.cancel()
                query.thread.join()
                raise NotWanted(what)
        if query.failure is not None:
            raise query.failure
        return query.rows

    def arrow(self, sql: str) -> pa.Table:
        """A small result in the stored types. Raises what Spark raises."""
        return self._spark.sql(sql).toArrow()


class _Query:
    """One query, on a thread of its own, so that it can be left."""

    def __init__(self, spark: SparkSession, sql: str, what: str) -> None:
        self._spark, self._sql, self._what = spark, sql, what
        self._group = f"binlogd-verify-{uuid4().hex}"
        self.rows: list[tuple[Any, ...]] = []
        self.failure: Exception | None = None
        self.thread: threading.Thread = InheritableThread(
            target=self._run, session=spark, name="verify-query", daemon=True
        )

    def cancel(self) -> None:
        """End its jobs, and those that it would start."""
        context = self._spark.sparkContext
        context._jsc.sc().cancelJobGroupAndFutureJobs(self._group)

    def _run(self) -> None:
        context = self._spark.sparkContext
        context.setLocalProperty("spark.scheduler.pool", "binlogd-verify")
        context.setJobGroup(self._group, self._what, interruptOnCancel=True)
        try:
            self.rows = [tuple(row) for row in self._spark.sql(self._sql).collect()]
        except Exception as error:  # handed to the caller's thread
            self.failure = error
