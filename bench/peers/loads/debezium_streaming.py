"""Debezium's snapshot and stream on a standalone worker, applied by Structured Streaming.

The connector as in ``debezium_snapshot``, but JSON without schemas, and decimals as texts: what an
expert would choose for a job that knows its columns. The job as in ``streaming_expert``: one last
change a key and batch, MERGE pruned by the keys. Nothing of it runs before the clock does.

The end: the last change is in the table.
"""

from __future__ import annotations

import os
import sys
import threading
from functools import partial
from pathlib import Path

import msgspec
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from actors.runtime.jars import JarsError
from bench.compare.job import CATALOG, Begin, End, Job, Loaded, Missing, read_job, tell
from bench.peers.connect_worker import ask, check_tasks, running
from bench.peers.jars import fetch_peer
from bench.peers.loads.debezium_snapshot import WORKER, connector
from bench.peers.loads.seen import await_marker, await_rows
from bench.peers.spark_peer import create_table, named, start
from bench.peers.streaming import apply
from bench.peers.streaming_expert import OPTIONS, merge_netted
from collector.jars import collector_folder, worker_classpath
from tests.live.jars import bring_collector

_PLAIN = {"key.converter.schemas.enable": "false", "value.converter.schemas.enable": "false"}
_JSON = {"BIGINT": "BIGINT", "INT": "INT", "STRING": "STRING", "DECIMAL(10,2)": "STRING",
         "TIMESTAMP_NTZ": "BIGINT"}  # fmt: skip
"""By the column's type how Debezium writes it: a time as microseconds since 1970."""


def changes(batch: DataFrame, job: Job) -> DataFrame:
    """The rows of the messages: table, op, offset, index, then the typed columns. Messages of
    other tables, and of nothing, have none."""
    columns = job.tables[0].columns
    row = ", ".join(f"`{column.name}`: {_JSON[column.spark]}" for column in columns)
    schema = f"before STRUCT<{row}>, after STRUCT<{row}>, op STRING, source STRUCT<`table`: STRING>"
    parsed = batch.select("offset", F.from_json(F.col("value").cast("string"), schema).alias("m"))
    image = F.when(F.col("m.op") == "d", F.col("m.before")).otherwise(F.col("m.after"))
    rows = parsed.where("m.op IS NOT NULL").select(
        F.col("m.source.table").alias("table"),
        F.upper("m.op").alias("op"),
        "offset",
        F.lit(0).alias("index"),
        image.alias("row"),
    )
    typed = []
    for column in columns:
        value = F.col(f"row.{column.name}")
        if column.spark == "TIMESTAMP_NTZ":
            # The session's zone is UTC: a moment's digits there are the value's own.
            value = F.timestamp_micros(value)
        typed.append(value.cast(column.spark.lower()).alias(column.name))
    return rows.select("table", "op", "offset", "index", *typed)


def write(batch: DataFrame, job: Job, catalog: str) -> None:
    """Apply a batch to the table."""
    merge_netted(changes(batch, job), job, catalog)


def main() -> None:
    """Run both, or say why that can't be."""
    job = read_job()
    try:
        bring_collector()
        fetch_peer("streaming", Path(job.peer_jars))
    except JarsError as problem:
        tell(Missing(str(problem)))
        return
    debezium = os.pathsep.join(map(str, sorted(collector_folder("mariadb").glob("*.jar"))))
    tell(Begin())
    with running(job, worker_classpath(), debezium, WORKER | _PLAIN) as (port, _):
        config = connector(job) | {"decimal.handling.mode": "string"}
        ask(port, "/connectors", {"name": "snapshot", "config": config})
        query = _started(job)

        def check() -> None:
            check_tasks(port, "snapshot")
            if not query.is_alive():
                raise SystemExit("the query has ended")

        await_rows(job, check)
        tell(Loaded())
        await_marker(job, check)
        tell(End(job.end))


def _started(job: Job) -> threading.Thread:
    """Spark, and a query that goes on until somebody ends the process."""
    conf = {"spark.sql.shuffle.partitions": str(job.cores), "spark.sql.session.timeZone": "UTC"}
    jars = Path(job.peer_jars) / "streaming" / "spark"
    spark = start(job, conf, sorted(jars.glob("*.jar")))
    (table,) = job.tables
    create_table(spark, named(table), table.columns)
    endless = msgspec.structs.replace(job, end=sys.maxsize)
    options = OPTIONS | {"minPartitions": str(job.cores)}
    run = partial(apply, spark, endless, options, write, CATALOG)
    query = threading.Thread(target=run, daemon=True, name="query")
    query.start()
    return query


if __name__ == "__main__":
    main()
