"""What both contestants on Structured Streaming share: the source, the rows, the query's run."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from bench.compare.job import CATALOG, Begin, Column, End, Job, TableSpec, tell
from bench.compare.messages import messages
from bench.compare.workloads import Workload
from bench.peers.dts_text import canal_text
from bench.peers.jars import fetch_peer
from bench.peers.spark_peer import WARM, WARM_ROUNDS, WARM_ROWS, create_table, named, start

PLACES = (Column("op", "", "STRING"), Column("offset", "", "BIGINT"), Column("index", "", "INT"))
"""What a changelog's rows have before the source's columns."""

Write = Callable[[DataFrame, Job, str], None]
"""Applies a batch of (offset, value) to the tables in the catalog, or namespace, of this name."""


def changes(batch: DataFrame, job: Job) -> DataFrame:
    """The rows of the messages: table, op, offset, index, then the typed columns.

    The tables of a job have the same columns: one schema does for all.
    """
    columns = job.tables[0].columns
    texts = ", ".join(f"`{column.name}`: STRING" for column in columns)
    schema = f"`table` STRING, `type` STRING, data ARRAY<STRUCT<{texts}>>"
    dts = F.udf(canal_text, "STRING")
    text = F.col("value").cast("string") if job.format == "canal-json" else dts("value")
    parsed = batch.select("offset", F.from_json(text, schema).alias("m"))
    rows = parsed.select(
        F.col("m.table").alias("table"),
        F.substring("m.type", 1, 1).alias("op"),
        "offset",
        F.posexplode("m.data").alias("index", "row"),
    )
    typed = [F.col(f"row.{c.name}").cast(c.spark.lower()).alias(c.name) for c in columns]
    return rows.select("table", "op", "offset", "index", *typed)


def run(job: Job, conf: Mapping[str, str], options: Mapping[str, str], write: Write) -> None:
    """Warm up, begin, apply all, end. Main thread."""
    peers = Path(job.peer_jars)
    fetch_peer("streaming", peers)
    spark = start(job, conf, sorted((peers / "streaming" / "spark").glob("*.jar")))
    _make_tables(spark, job)
    _warm_up(spark, job, write)
    tell(Begin())
    tell(End(apply(spark, job, options, write, CATALOG)))
    spark.stop()


def _make_tables(spark: SparkSession, job: Job) -> None:
    if not job.prepared:
        for table in job.tables:
            create_table(spark, named(table), (*PLACES, *table.columns))


def _warm_up(spark: SparkSession, job: Job, write: Write) -> None:
    """The contestant's own way into one table of a scratch catalog."""
    table = TableSpec("t0", job.tables[0].columns, job.tables[0].key)
    places = PLACES if job.mode == "append" else ()
    create_table(spark, named(table, WARM), (*places, *table.columns))
    workload = Workload("warm", "", WARM_ROWS * WARM_ROUNDS, tables=1, format=job.format)
    values = list(enumerate(messages(workload)))
    for at in range(0, len(values), WARM_ROWS):
        rows = [(offset, bytearray(value)) for offset, value in values[at : at + WARM_ROWS]]
        batch = spark.createDataFrame(rows, "offset BIGINT, value BINARY")
        write(batch, job, WARM)


def apply(
    spark: SparkSession, job: Job, options: Mapping[str, str], write: Write, into: str
) -> int:
    """Run the query until the end, or until the time box is over; gives the offset reached."""
    checkpoint = Path(job.folder) / "checkpoint"
    finished = threading.Event()
    reached = 0
    until = None if job.time_box_s is None else time.monotonic() + job.time_box_s

    def on_batch(batch: DataFrame, number: int) -> None:
        nonlocal reached
        if finished.is_set():
            return  # the query is being stopped
        write(batch.select("offset", "value"), job, into)
        reached = end_of(checkpoint, number, job.topic)
        if reached >= job.end or (until is not None and time.monotonic() > until):
            finished.set()

    source = spark.readStream.format("kafka").options(
        **{
            "kafka.bootstrap.servers": job.bootstrap,
            "subscribe": job.topic,
            "startingOffsets": "earliest",
            **options,
        }
    )
    query: Any = (
        source.load()
        .writeStream.option("checkpointLocation", str(checkpoint))
        .foreachBatch(on_batch)
        .start()
    )
    while not finished.wait(0.05):
        if not query.isActive:
            raise SystemExit(f"the query ended: {query.exception()}")
    at = reached
    query.stop()
    return at


def end_of(checkpoint: Path, batch: int, topic: str) -> int:
    """The offset that a batch ends before: the last line of what Spark noted before it began."""
    lines = (checkpoint / "offsets" / str(batch)).read_text().splitlines()
    return int(json.loads(lines[-1])[topic]["0"])
