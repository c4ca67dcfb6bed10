"""A plain read of Spark over JDBC, as an expert writes it: nothing else is made equal.

``spark.read.jdbc`` between the key's least and greatest, four partitions a core, a fetch size of
10,000 rows, so that the driver holds no result whole; ``writeTo(...).append()`` into a table
without partitions, one commit. 4 GB of heap, the user interface off. MariaDB's driver is asked for
MySQL, whose quotes Spark knows.

It has the rows of as many moments as there are partitions, and nothing that came meanwhile.
"""

from __future__ import annotations

from pyspark.sql import SparkSession

from actors.runtime.jars import JarsError, extra_jars, fetch_extra
from bench.compare.job import NAMESPACE, Begin, End, Job, Missing, read_job, tell
from bench.peers.spark_peer import WARM, WARM_ROUNDS, create_table, named, start

PARTITIONS_A_CORE = 4
FETCH_ROWS = 10_000
_WARM_ROWS = 500


def copy(spark: SparkSession, job: Job, target: str, table: str, partitions: int) -> None:
    """Append the rows of a table, or of a query in brackets, to a table of the lake."""
    (key,) = job.tables[0].key
    options = {
        "driver": "org.mariadb.jdbc.Driver", "user": job.source["user"],
        "password": job.source["password"], "fetchsize": str(FETCH_ROWS),
    }  # fmt: skip
    url = f"jdbc:mysql://{job.source['host']}:{job.source['port']}/{NAMESPACE}?permitMysqlScheme"
    bounds = f"(SELECT min({key}) AS low, max({key}) AS high FROM {table}) AS bounds"
    ((low, high),) = spark.read.jdbc(url, bounds, properties=options).collect()
    rows = spark.read.option("preferTimestampNTZ", "true").jdbc(
        url, table, column=key, lowerBound=low, upperBound=high + 1, numPartitions=partitions,
        properties=options,
    )  # fmt: skip
    rows.writeTo(target).append()


def main() -> None:
    """Run it, or say why that can't be."""
    job = read_job()
    try:
        fetch_extra("mariadb")
        jars = extra_jars(["mariadb"])
    except JarsError as problem:
        tell(Missing(str(problem)))
        return
    spark = start(job, {"spark.sql.shuffle.partitions": str(job.cores)}, jars)
    (table,) = job.tables
    create_table(spark, named(table), table.columns)
    create_table(spark, named(table, WARM), table.columns)
    some = f"(SELECT * FROM {table.name} LIMIT {_WARM_ROWS}) AS some"
    for _ in range(WARM_ROUNDS):
        copy(spark, job, named(table, WARM), some, 1)
    tell(Begin())
    copy(spark, job, named(table), table.name, PARTITIONS_A_CORE * job.cores)
    tell(End(job.end))
    spark.stop()


if __name__ == "__main__":
    main()
