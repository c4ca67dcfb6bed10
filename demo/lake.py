"""Reads the demo's tables back from the lake with a Spark session of its own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from actors.runtime.jars import extra_jars, lake_jars
from actors.runtime.java import find_java
from sparkwriter.session.session import start_session
from sparkwriter.session.spark_conf import needed_extras

CATALOG = "lake"


def embedded(var: Path) -> Mapping[str, str]:
    """The catalog of ``config.toml``: in a file, its warehouse a folder beside it."""
    return {
        "type": "jdbc",
        "uri": f"jdbc:sqlite:{var / 'catalog.db'}",
        "jdbc.schema-version": "V1",
        "warehouse": str(var / "warehouse"),
    }


def open_session(var: Path, catalog: Mapping[str, str] | None = None) -> SparkSession:
    """Start a session on a catalog (5-10 s); ends by ``session.stop()``.

    ``catalog``: the embedded one in the folder where none is given. From the main thread only. It
    sets JAVA_HOME for this process. Raises JavaMissing, JarsError or SinkUnavailable.
    """
    os.environ["JAVA_HOME"] = str(find_java().home)
    properties = embedded(var) if catalog is None else catalog
    jars = [*lake_jars(), *extra_jars(needed_extras(properties, {}))]
    log = var / "log" / "readback" / "jvm.log"
    conf = {"spark.sql.warehouse.dir": str(var / "spark-warehouse")}
    scratch = log.with_name("scratch")
    return start_session(conf, "local[*]", jars, {CATALOG: properties}, log, scratch)


def read_tables(session: SparkSession, namespace: str) -> dict[str, pa.Table]:
    """Read every table of a namespace of the lake whole; none where it doesn't exist."""
    spaces = {row.namespace for row in session.sql(f"SHOW NAMESPACES IN {CATALOG}").collect()}
    if namespace not in spaces:
        return {}
    place = f"{CATALOG}.`{namespace}`"
    names = [row.tableName for row in session.sql(f"SHOW TABLES IN {place}").collect()]
    return {name: session.table(f"{place}.`{name}`").toArrow() for name in names}
