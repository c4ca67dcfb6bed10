"""What contestants on Spark share: a session, and the types of a job's tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from actors.runtime.jars import extra_jars, lake_jars
from bench.compare.job import CATALOG, NAMESPACE, Column, Job, TableSpec
from sparkwriter.session.session import start_session
from sparkwriter.session.spark_conf import needed_extras

WARM = "warm"
"""A catalog of nobody's: what warms the JVM up is written there."""
WARM_ROWS = 500
WARM_ROUNDS = 4
"""As many writes of as many rows as binlogd does at its start (sparkwriter/iceberg/sink.py)."""


def start(job: Job, conf: Mapping[str, str], jars: Iterable[Path] = ()) -> SparkSession:
    """Start Spark on all cores with the job's catalog, 4 GB of heap unless ``conf`` says other."""
    folder = Path(job.folder)
    settings = {
        "spark.driver.memory": "4g",
        "spark.sql.warehouse.dir": str(folder / "spark-warehouse"),
        **conf,
    }
    catalogs = {CATALOG: job.catalog, WARM: {"type": "hadoop", "warehouse": str(folder / WARM)}}
    master = f"local[{job.cores}]"
    jars = [*lake_jars(), *extra_jars(needed_extras(job.catalog, {})), *jars]
    log = folder / "log" / "jvm.log"
    spark = start_session(settings, master, jars, catalogs, log, folder / "scratch")
    # binlogd turns Iceberg's cache off, since others write its tables; nobody else does here.
    spark.conf.set(f"spark.sql.catalog.{CATALOG}.cache-enabled", "true")
    return spark


def named(table: TableSpec, catalog: str = CATALOG) -> str:
    """A table's name in SQL."""
    return f"`{catalog}`.`{NAMESPACE}`.`{table.name}`"


def create_table(spark: SparkSession, name: str, columns: Iterable[Column]) -> None:
    """Make a table as binlogd makes its own: format v3, merge-on-read, zstd."""
    told = ", ".join(f"`{column.name}` {column.spark}" for column in columns)
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {name.rpartition('.')[0]}")
    spark.sql(
        f"CREATE TABLE {name} ({told}) USING iceberg TBLPROPERTIES ('format-version' = '3',"
        " 'write.delete.mode' = 'merge-on-read', 'write.update.mode' = 'merge-on-read',"
        " 'write.merge.mode' = 'merge-on-read', 'write.parquet.compression-codec' = 'zstd')"
    )


def merge_sql(target: str, source: str, table: TableSpec, within: str = "") -> str:
    """MERGE of netted rows, whose column ``op`` is I, U or D."""
    names = [column.name for column in table.columns]
    keys = " AND ".join(f"t.`{key}` = s.`{key}`" for key in table.key)
    changed = ", ".join(f"t.`{name}` = s.`{name}`" for name in names)
    listed, values = (", ".join(f"{p}`{name}`" for name in names) for p in ("", "s."))
    return (
        f"MERGE INTO {target} t USING {source} s ON {keys}{within}"
        " WHEN MATCHED AND s.op = 'D' THEN DELETE"
        f" WHEN MATCHED THEN UPDATE SET {changed}"
        f" WHEN NOT MATCHED AND s.op <> 'D' THEN INSERT ({listed}) VALUES ({values})"
    )
