"""The naive actor design: one record a message between actors, rows as dicts, one write per table
and poll.

A router decodes each record by json and tells each row to its table's actor; after each poll of
500 records (what a Kafka client's ``max.poll.records`` is by default) every table with news writes
them by MERGE from a DataFrame made of the dicts, and the next poll waits for all of them.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pykka
from confluent_kafka import Consumer, TopicPartition
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import Row

from bench.compare.job import CATALOG, Begin, End, Job, Missing, TableSpec, read_job, tell
from bench.compare.messages import messages
from bench.compare.workloads import Workload
from bench.peers.spark_peer import (
    WARM,
    WARM_ROUNDS,
    WARM_ROWS,
    create_table,
    merge_sql,
    named,
    start,
)

POLL = 500


class TableActor(pykka.ThreadingActor):
    """Keeps the last row of each key until it is told to write."""

    def __init__(self, spark: SparkSession, table: TableSpec, catalog: str) -> None:
        super().__init__()
        self._spark, self._table, self._target = spark, table, named(table, catalog)
        self._rows: dict[tuple[str, ...], dict[str, str]] = {}

    def on_receive(self, message: Any) -> None:
        """A row, or None: write."""
        if message is not None:
            self._rows[tuple(message[key] for key in self._table.key)] = message
        elif self._rows:
            self._write(list(self._rows.values()))
            self._rows.clear()

    def _write(self, rows: list[dict[str, str]]) -> None:
        view = f"rows_of_{self._table.name}"
        texts = [Row(**row) for row in rows]
        typed = [F.col(c.name).cast(c.spark.lower()).alias(c.name) for c in self._table.columns]
        frame = self._spark.createDataFrame(texts).select("op", *typed)
        frame.createOrReplaceTempView(view)
        self._spark.sql(merge_sql(self._target, view, self._table))


class Router(pykka.ThreadingActor):
    """Decodes a record and tells each row to its table."""

    def __init__(self, tables: dict[str, pykka.ActorRef[TableActor]]) -> None:
        super().__init__()
        self._tables = tables

    def on_receive(self, message: Any) -> None:
        """A record's bytes; None: an answer, when all before it are told."""
        if message is None:
            return
        record = json.loads(message)
        for row in record["data"]:
            self._tables[record["table"]].tell({**row, "op": record["type"][0]})


class Flow:
    """The actors of a job's tables in one catalog."""

    def __init__(self, spark: SparkSession, tables: tuple[TableSpec, ...], catalog: str) -> None:
        self._tables = {t.name: TableActor.start(spark, t, catalog) for t in tables}
        self._router = Router.start(self._tables)

    def apply(self, values: list[bytes]) -> None:
        """One poll: returns when all is written."""
        for value in values:
            self._router.tell(value)
        self._router.ask(None)
        for written in [table.ask(None, block=False) for table in self._tables.values()]:
            written.get()

    def stop(self) -> None:
        """End the actors."""
        self._router.stop()
        for table in self._tables.values():
            table.stop()


def _warm_up(spark: SparkSession, job: Job) -> None:
    table = TableSpec("t0", job.tables[0].columns, job.tables[0].key)
    create_table(spark, named(table, WARM), table.columns)
    flow = Flow(spark, (table,), WARM)
    values = list(messages(Workload("warm", "", WARM_ROWS * WARM_ROUNDS, tables=1)))
    for at in range(0, len(values), WARM_ROWS):
        flow.apply(values[at : at + WARM_ROWS])
    flow.stop()


def main() -> None:
    """Poll and write until the end, or until the time box is over."""
    job = read_job()
    if job.format != "canal-json" or job.mode != "upsert":
        tell(Missing("the program reads Canal's JSON and upserts"))
        return
    spark = start(job, {})
    _warm_up(spark, job)
    flow = Flow(spark, job.tables, CATALOG)
    consumer = Consumer({"bootstrap.servers": job.bootstrap, "group.id": Path(job.folder).name})
    consumer.assign([TopicPartition(job.topic, 0, 0)])
    tell(Begin())
    until = None if job.time_box_s is None else time.monotonic() + job.time_box_s
    reached = 0
    while reached < job.end and (until is None or time.monotonic() < until):
        polled = [value for m in consumer.consume(POLL, 1.0) if (value := m.value()) is not None]
        flow.apply(polled)
        reached += len(polled)
    tell(End(reached))
    consumer.close()
    flow.stop()
    spark.stop()


if __name__ == "__main__":
    main()
