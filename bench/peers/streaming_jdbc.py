"""Structured Streaming into a database as an expert writes it.

One read of Kafka for all tables, split over the cores, so many offsets a trigger; from_json with a
schema of what is needed, so that the schema in each record is skipped; the last change of each key
by row_number; JDBC writes of it from every core at once into one staging table, which is not
logged (PostgreSQL) and has no key, the driver rewriting batches to statements of many rows; then
one transaction: for each table INSERT … ON CONFLICT (ON DUPLICATE KEY UPDATE) and DELETE, and the
stage is empty again. 4 GB of heap, as many shuffle partitions as cores, the user interface off.

The batch is applied again after a failure: upserts and deletes by key come to the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from actors.runtime.jars import JarsError, extra_jars, fetch_extra
from bench.compare.job import NAMESPACE, Begin, Column, End, Job, Missing, read_job, tell
from bench.compare.messages import messages
from bench.peers.jars import fetch_peer
from bench.peers.scratch_tables import SCRATCH, scratch_table, session, warm_up_workload
from bench.peers.spark_peer import WARM_ROUNDS, WARM_ROWS
from bench.peers.streaming import apply
from sparkwriter.session.session import start_session

OPTIONS = {
    "maxOffsetsPerTrigger": "100000",
    "kafka.max.poll.records": "10000",
    "kafka.max.partition.fetch.bytes": str(16 << 20),
    "kafka.fetch.max.bytes": str(64 << 20),
}
STAGE = "stage"
_READ = {
    "BIGINT": ("BIGINT", "{0}"),
    "INT": ("INT", "{0}"),
    "STRING": ("STRING", "{0}"),
    "DECIMAL(10,2)": (
        "STRING",
        # Bytes in base64, two's complement: none of these amounts is below zero.
        "cast(cast(conv(hex(unbase64({0})), 16, 10) as decimal(20,0)) / 100 as decimal(10,2))",
    ),
    "TIMESTAMP_NTZ": ("BIGINT", "cast(timestamp_millis({0}) as timestamp_ntz)"),
}
"""By the column's type: the type in the record, and how it is read."""

_DRIVERS = {
    "postgresql": ("org.postgresql.Driver", "?reWriteBatchedInserts=true"),
    "mariadb": ("org.mariadb.jdbc.Driver", "?permitMysqlScheme&useBulkStmts=true"),
}
"""By what each is called, and what it needs to send many rows at once. Spark quotes names as
MariaDB does only where it takes the database for MySQL: its driver knows that name if permitted."""


def changes(batch: DataFrame, columns: Sequence[Column]) -> DataFrame:
    """The rows of the records: table, op, offset, then the typed columns; of a delete the key."""
    image = ", ".join(f"`{column.name}`: {_READ[column.spark][0]}" for column in columns)
    schema = (
        f"payload STRUCT<op: STRING, source: STRUCT<`table`: STRING>,"
        f" before: STRUCT<{image}>, after: STRUCT<{image}>>"
    )
    parsed = batch.select(
        "offset", F.from_json(F.col("value").cast("string"), schema)["payload"].alias("m")
    ).select(
        F.col("m.source.table").alias("tbl"),
        F.col("m.op").alias("op"),
        "offset",
        F.expr("coalesce(m.after, m.before)").alias("row"),
    )
    typed = [
        F.expr(_READ[column.spark][1].format(f"row.`{column.name}`")).alias(column.name)
        for column in columns
    ]
    return parsed.select("tbl", "op", "offset", *typed)


def stage_sql(job: Job, namespace: str) -> Iterator[str]:
    """The statements that make the staging table."""
    postgres = job.catalog["type"] == "postgresql"
    first = f"{namespace}.{job.tables[0].name}"
    kind, texts = ("UNLOGGED ", ("text", "text")) if postgres else ("", ("char(64)", "char(1)"))
    yield (
        f"CREATE {kind}TABLE {namespace}.{STAGE} AS SELECT cast('' AS {texts[0]}) AS tbl,"
        f" cast('' AS {texts[1]}) AS op, t.* FROM {first} t WHERE 1 = 0"
    )


def apply_sql(job: Job, namespace: str, tables: Sequence[str]) -> Iterator[str]:
    """The one transaction that has the tables hold what is staged."""
    columns = [column.name for column in job.tables[0].columns]
    (key,) = job.tables[0].key
    others = [name for name in columns if name != key]
    names, stage = ", ".join(columns), f"{namespace}.{STAGE}"
    if job.catalog["type"] == "postgresql":
        sets = ", ".join(f"{name} = EXCLUDED.{name}" for name in others)
        conflict, delete = f"ON CONFLICT ({key}) DO UPDATE SET {sets}", "DELETE FROM {0} t USING"
    else:
        sets = ", ".join(f"{name} = VALUES({name})" for name in others)
        conflict, delete = f"ON DUPLICATE KEY UPDATE {sets}", "DELETE t FROM {0} t JOIN"
    yield "BEGIN"
    for table in tables:
        target = f"{namespace}.{table}"
        yield (
            f"INSERT INTO {target} ({names}) SELECT {names} FROM {stage}"
            f" WHERE tbl = '{table}' AND op <> 'd' {conflict}"
        )
        yield (
            f"{delete.format(target)} {stage} s"
            f" WHERE s.tbl = '{table}' AND s.op = 'd' AND s.{key} = t.{key}"
        )
    yield "COMMIT"


def write(batch: DataFrame, job: Job, namespace: str) -> None:
    """Apply a batch to the tables of a namespace."""
    columns, kind = job.tables[0].columns, job.catalog["type"]
    rows = changes(batch, columns)
    order = Window.partitionBy("tbl", *job.tables[0].key).orderBy(F.desc("offset"))
    last = rows.withColumn("place", F.row_number().over(order)).where("place = 1")
    driver, parameters = _DRIVERS[kind]
    path = namespace if kind == "mariadb" else ""
    options = {"driver": driver, "user": job.catalog["user"], "batchsize": "10000",
               "isolationLevel": "READ_COMMITTED"}  # fmt: skip
    tables = ["t0"] if namespace == SCRATCH else [table.name for table in job.tables]
    with closing(session(job)) as here:
        if kind == "mariadb":  # its DELETE with an alias asks for it
            here.run(f"USE {namespace}")
        here.run(f"TRUNCATE TABLE {namespace}.{STAGE}")
        url = job.catalog["url"].replace("jdbc:mariadb:", "jdbc:mysql:") + path + parameters
        last.drop("place", "offset").write.jdbc(url, f"{namespace}.{STAGE}", "append", options)
        for statement in apply_sql(job, namespace, tables):
            here.run(statement)


def main() -> None:
    """Run it, or say why that can't be."""
    job = read_job()
    kind, peers = job.catalog["type"], Path(job.peer_jars)
    try:
        fetch_peer("streaming", peers)
        fetch_extra(kind)
        jars = [*sorted((peers / "streaming" / "spark").glob("*.jar")), *extra_jars([kind])]
    except JarsError as problem:
        tell(Missing(str(problem)))
        return
    folder = Path(job.folder)
    settings = {
        "spark.driver.memory": "4g",
        "spark.sql.warehouse.dir": str(folder / "spark-warehouse"),
        "spark.sql.shuffle.partitions": str(job.cores),
    }
    log, scratch = folder / "log" / "jvm.log", folder / "scratch"
    spark = start_session(settings, f"local[{job.cores}]", jars, {}, log, scratch)
    with closing(session(job)) as here:
        for statement in stage_sql(job, NAMESPACE):
            here.run(statement)
    _warm_up(spark, job)
    tell(Begin())
    tell(End(apply(spark, job, OPTIONS | {"minPartitions": str(job.cores)}, write, NAMESPACE)))
    spark.stop()


def _warm_up(spark: SparkSession, job: Job) -> None:
    """The contestant's own way into a scratch table."""
    workload = warm_up_workload(job, WARM_ROWS * WARM_ROUNDS)
    values = list(enumerate(messages(workload)))
    with scratch_table(job):
        with closing(session(job)) as here:
            for statement in stage_sql(job, SCRATCH):
                here.run(statement)
        for at in range(0, len(values), WARM_ROWS):
            rows = [(offset, bytearray(value)) for offset, value in values[at : at + WARM_ROWS]]
            batch = spark.createDataFrame(rows, "offset BIGINT, value BINARY")
            write(batch, job, SCRATCH)


if __name__ == "__main__":
    main()
