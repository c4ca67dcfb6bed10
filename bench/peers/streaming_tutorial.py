"""Structured Streaming as the tutorial writes it: foreachBatch, a MERGE for each table in a loop.

Spark's defaults but for the heap, which is the others' 4 GB: 200 shuffle partitions, AQE on,
nothing cached, so each table's MERGE reads and parses the batch again. 500,000 offsets a trigger,
without which a backlog is one batch.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from bench.compare.job import CATALOG, Job, read_job
from bench.peers.spark_peer import merge_sql, named
from bench.peers.streaming import changes, run

OPTIONS = {"maxOffsetsPerTrigger": "500000"}
CONF = {"spark.sql.shuffle.partitions": "200", "spark.scheduler.mode": "FIFO"}


def write(batch: DataFrame, job: Job, catalog: str) -> None:
    """Apply a batch to the tables of a catalog, one after another."""
    rows = changes(batch, job)
    tables = job.tables if catalog == CATALOG else job.tables[:1]
    for table in tables:
        order = Window.partitionBy(*table.key).orderBy(F.desc("offset"), F.desc("index"))
        mine = rows.where(F.col("table") == table.name)
        last = mine.withColumn("place", F.row_number().over(order)).where("place = 1")
        last.createOrReplaceTempView("changes")
        batch.sparkSession.sql(merge_sql(named(table, catalog), "changes", table))


def main() -> None:
    """Run it."""
    run(read_job(), CONF, OPTIONS, write)


if __name__ == "__main__":
    main()
