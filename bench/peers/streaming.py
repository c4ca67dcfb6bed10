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
from pyspark.sql.avro.functions import from_avro

from bench.compare.debezium_avro import value_schema
from bench.compare.job import CATALOG, Begin, Column, End, Job, TableSpec, tell
from bench.compare.messages import messages
from bench.compare.workloads import Workload
from bench.peers.dts_text import canal_text
from bench.peers.jars import fetch_peer
from bench.peers.spark_peer import WARM, WARM_ROUNDS, WARM_ROWS, create_table, named, start

PLACES = (Column("op", "", "STRING"), Column("offset", "", "BIGINT"), Column("index", "", "INT"))
"""What a changelog's rows have before the source's columns."""

_FRAME = 5
"""Bytes of a registry's frame."""
_TYPES: dict[str, Any] = {
    "BIGINT": "long",
    "INT": "int",
    "STRING": "string",
    "DECIMAL(10,2)": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2},
    "TIMESTAMP_NTZ": {"type": "long", "logicalType": "local-timestamp-millis"},
}
"""By the column's type how it is read: what Debezium's types say by Connect's names alone."""

Write = Callable[[DataFrame, Job, str], None]
"""Applies a batch of (offset, value) to the tables in the catalog, or namespace, of this name."""


def changes(batch: DataFrame, job: Job) -> DataFrame:
    """The rows of the messages: table, op, offset, index, then the typed columns.

    The tables of a job have the same columns: one schema does for all.
    """
    if job.format == "debezium-avro":
        return _avro_changes(batch, job.tables[0])
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


def wanted_schema(table: TableSpec) -> dict[str, Any]:
    """What is read of an envelope."""
    columns = [_optional(column.name, _TYPES[column.spark]) for column in table.columns]
    key = [field for field in columns if field["name"] in table.key]
    return _record(
        "Envelope",
        [
            _optional("before", _record("Key", key)),
            _optional("after", _record("Row", columns)),
            {"name": "source", "type": _record("Source", [_optional("table", "string")])},
            {"name": "op", "type": "string"},
        ],
    )


def _avro_changes(batch: DataFrame, table: TableSpec) -> DataFrame:
    """The rows of envelopes in Avro, as ``changes`` gives them; of a delete only the key.

    The schemas are known, so no registry is asked. from_avro reads with the writer's schema into
    one that has only what is needed, so that the rest is skipped. The tables' schemas differ by
    names alone, which are not in the bytes: one reads all.
    """
    written, wanted = value_schema(table.name, table.columns), wanted_schema(table)
    payload = F.substring("value", _FRAME + 1, 1 << 30)
    read = from_avro(payload, json.dumps(written), {"avroSchema": json.dumps(wanted)})
    values = [
        F.coalesce(f"m.after.{name}", f"m.before.{name}").alias(name)
        if name in table.key
        else F.col(f"m.after.{name}").alias(name)
        for name in (column.name for column in table.columns)
    ]
    return batch.select("offset", read.alias("m")).select(
        F.col("m.source.table").alias("table"),
        F.upper("m.op").alias("op"),
        "offset",
        F.lit(0).alias("index"),
        *values,
    )


def _optional(name: str, type_: Any) -> dict[str, Any]:
    return {"name": name, "type": ["null", type_], "default": None}


def _record(name: str, fields: list[dict[str, Any]]) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": fields}


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
        reached = end_of(checkpoint, number)
        if reached >= job.end or (until is not None and time.monotonic() > until):
            finished.set()

    source = spark.readStream.format("kafka").options(
        **{
            "kafka.bootstrap.servers": job.bootstrap,
            "subscribe": ",".join(job.places),
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


def end_of(checkpoint: Path, batch: int) -> int:
    """How many messages there are up to a batch's end: the offsets, of all partitions, in the last
    line of what Spark noted before it began."""
    lines = (checkpoint / "offsets" / str(batch)).read_text().splitlines()
    return sum(sum(ends.values()) for ends in json.loads(lines[-1]).values())
