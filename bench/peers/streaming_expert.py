"""Structured Streaming as an expert writes it.

One read of Kafka for all tables, split over the cores (``minPartitions``), 500,000 offsets a
trigger; from_json with a schema, or from_avro with a part of one; the last change of each key by
row_number; the netted batch cached, sorted by table and key, so that each table's part is found by
the cache's statistics; one small query tells which tables have rows and between which keys; then
MERGE into each of them, four at a time, pruned by these keys, each in a scheduler pool of its own.
4 GB of heap, as many shuffle partitions as cores, Iceberg's table cache on, the user interface off.
A changelog is appended without netting.

``variant``: ``{"jit": "c1"}`` has the JVM compile quickly and not as well, as binlogd's default
has it on few cores.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from bench.compare.job import Job, TableSpec, read_job
from bench.peers.spark_peer import merge_sql, named
from bench.peers.streaming import changes, run

THREADS = 4
OPTIONS = {
    "maxOffsetsPerTrigger": "500000",
    "kafka.max.poll.records": "10000",
    "kafka.max.partition.fetch.bytes": str(16 << 20),
    "kafka.fetch.max.bytes": str(64 << 20),
}


def write(batch: DataFrame, job: Job, catalog: str) -> None:
    """Apply a batch to the tables of a catalog."""
    rows = changes(batch, job)
    if job.mode == "append":
        _append(rows, job, catalog)
        return
    merge_netted(rows, job, catalog)


def merge_netted(rows: DataFrame, job: Job, catalog: str) -> None:
    """Merge the last change of each key into its table."""
    key = job.tables[0].key[0]
    order = Window.partitionBy("table", *job.tables[0].key).orderBy(
        F.desc("offset"), F.desc("index")
    )
    last = rows.withColumn("place", F.row_number().over(order)).where("place = 1")
    netted = last.drop("place", "offset", "index").persist()
    try:
        parts = netted.groupBy("table").agg(F.min(key).alias("low"), F.max(key).alias("high"))
        found = {row["table"]: row for row in parts.collect()}
        tables = [table for table in job.tables if table.name in found]
        with ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(lambda t: _merge(netted, t, catalog, found[t.name]), tables))
    finally:
        netted.unpersist()


def _merge(netted: DataFrame, table: TableSpec, catalog: str, part: Any) -> None:
    spark = netted.sparkSession
    spark.sparkContext.setLocalProperty("spark.scheduler.pool", table.name)
    view = f"changes_of_{table.name}"
    netted.where(F.col("table") == table.name).createOrReplaceTempView(view)
    key = table.key[0]
    within = f" AND t.`{key}` BETWEEN {part['low']} AND {part['high']}"
    spark.sql(merge_sql(named(table, catalog), view, table, within))


def _append(rows: DataFrame, job: Job, catalog: str) -> None:
    """There is one table: no need to look which."""
    (table,) = job.tables
    columns = [column.name for column in table.columns]
    rows.select("op", "offset", "index", *columns).writeTo(named(table, catalog)).append()


def main() -> None:
    """Run it."""
    job = read_job()
    conf = {"spark.sql.shuffle.partitions": str(job.cores)}
    if job.variant.get("jit") == "c1":
        conf["spark.driver.extraJavaOptions"] = "-XX:TieredStopAtLevel=1"
    run(job, conf, OPTIONS | {"minPartitions": str(job.cores)}, write)


if __name__ == "__main__":
    main()
