"""A catalog's properties as settings of Spark, with what Iceberg's own defaults lack. Pure."""

from __future__ import annotations

from collections.abc import Mapping

SPARK_CATALOG = "org.apache.iceberg.spark.SparkCatalog"

_FEWER_REQUESTS = {
    # A manifest never changes, and each write reads those of the writes before it, twice.
    "io.manifest.cache-enabled": "true",
    "io.manifest.cache.max-total-bytes": str(32 << 20),
    # A request a write, of which a catalog makes a log line.
    "rest-metrics-reporting-enabled": "false",
}

_BOUNDED = {
    # Iceberg's REST client waits without end for an answer, and three minutes for a connection. A
    # catalog that is cut off without a word would hold a writer until `write_timeout_s`, and then
    # cost the JVM. Shorter than a catalog's slow commit: each such commit is looked for in vain.
    "rest.client.connection-timeout-ms": "10000",
    "rest.client.socket-timeout-ms": "60000",
}

_BOUNDED_DATABASES = {
    # Seconds. The driver's own is without end, too.
    "jdbc:postgresql:": {"jdbc.socketTimeout": "60", "jdbc.tcpKeepAlive": "true"},
    # Milliseconds, with each of their two drivers.
    "jdbc:mariadb:": {"jdbc.socketTimeout": "60000"},
    "jdbc:mysql:": {"jdbc.socketTimeout": "60000"},
}
"""Not so for Hive, whose client waits for ten minutes: it takes an `alter_table` that it has given
up for one that failed and deletes the metadata it was to name, which may land yet."""

SQLITE_SYNC = "EXTRA"
"""SQLite's own default syncs all but the removal of its journal: after a power cut that may be
there again, and what it undoes is a commit whose positions were stored already."""

HIVE_PROPERTY = ("spark.hadoop.iceberg.hive.table-property-max-size", "4000")
"""Characters of a snapshot's summary that a Hive metastore gets; it is in the table's metadata
anyway. The marks of many lanes are longer than the column of a metastore's usual database takes,
which then refuses the commit. Iceberg's own bound is 32,672."""


def catalog_defaults(name: str, properties: Mapping[str, str]) -> dict[str, str]:
    """What a configuration may change, for the catalog of a sink's name."""
    key = f"spark.sql.catalog.{name}"
    found = {key: SPARK_CATALOG}
    found |= {f"{key}.{option}": value for option, value in _FEWER_REQUESTS.items()}
    found |= {f"{key}.{option}": value for option, value in _bounded(properties).items()}
    if properties.get("uri", "").startswith("jdbc:sqlite:"):
        found[f"{key}.jdbc.synchronous"] = SQLITE_SYNC
    if properties.get("type") == "hive":
        found |= dict([HIVE_PROPERTY])
    return found


def _bounded(properties: Mapping[str, str]) -> Mapping[str, str]:
    """How long a client waits. S3's needs nothing: 2 s to connect, 30 s for bytes, 5 more tries."""
    if properties.get("type") == "rest":
        return _BOUNDED
    uri = properties.get("uri", "")
    return next((found for of, found in _BOUNDED_DATABASES.items() if uri.startswith(of)), {})


def catalog_settings(name: str, properties: Mapping[str, str]) -> dict[str, str]:
    """The catalog's properties, and what marks rest on."""
    key = f"spark.sql.catalog.{name}"
    # A cached table hides what another process published: marks must come from the catalog.
    return {f"{key}.{option}": value for option, value in properties.items()} | {
        f"{key}.cache-enabled": "false"
    }


# Which jars beside everybody's a catalog or a database needs, by its properties. Pure.

_MARKS = {
    "s3": "iceberg-aws-bundle",
    "postgresql": "postgresql",
    "mariadb": "mariadb-java-client",
}
"""An extra to what the name of its jar begins with, or its package is called."""

_WHERE_SPARK_IS_TOLD = ("spark.jars", "spark.jars.packages", "spark.driver.extraClassPath")


def needed_extras(properties: Mapping[str, str], conf: Mapping[str, str]) -> tuple[str, ...]:
    """Name the extras that a catalog of these properties needs and ``conf`` does not bring.

    ``conf`` are Spark's settings as the user wrote them.
    """
    told = ",".join(conf.get(key, "") for key in _WHERE_SPARK_IS_TOLD)
    wanted = {"s3": _reaches_s3(properties), "postgresql": _asks_postgresql(properties)}
    return tuple(name for name, needs in wanted.items() if needs and _MARKS[name] not in told)


def driver_extra(url: str, conf: Mapping[str, str]) -> tuple[str, ...]:
    """Name the extra with the driver of a database at a URL, unless ``conf`` brings it.

    MariaDB's driver reads MySQL, too.
    """
    told = ",".join(conf.get(key, "") for key in _WHERE_SPARK_IS_TOLD)
    kind = url.removeprefix("jdbc:").partition(":")[0]
    name = "postgresql" if kind in ("postgresql", "postgres") else "mariadb"
    return () if _MARKS[name] in told else (name,)


def _reaches_s3(properties: Mapping[str, str]) -> bool:
    kind = properties.get("type", "").lower()
    return (
        properties.get("io-impl", "").endswith(".S3FileIO")
        or properties.get("warehouse", "").lower().startswith(("s3://", "s3a://", "s3n://"))
        or kind == "glue"
        or (kind == "rest" and any(key.startswith("s3.") for key in properties))
    )


def _asks_postgresql(properties: Mapping[str, str]) -> bool:
    return properties.get("uri", "").startswith("jdbc:postgresql:")


# Bounds for Spark's thread pools, derived from how many writers there are. Pure.

POOLS = ("shuffleExchange", "resultQueryStage")
EACH_WRITER = 4
"""Tasks of one statement at the same time: its exchanges, or its result."""
SUBQUERIES = "spark.sql.subquery.maxThreadThreshold"
_AT_ONCE = 16
"""Subqueries that Spark runs at the same time by itself."""


def thread_bounds(writers: int, conf: Mapping[str, str]) -> dict[str, str]:
    """The settings, beside those of the user, who wins.

    A task may wait for a subquery, and a subquery's own tasks go to the same pools: with too few
    threads all would wait for one another for ever. So there is room for all subqueries beside the
    statements, and where ``conf`` bounds those in its own way, Spark's bounds stay.
    """
    if SUBQUERIES in conf:
        return {}
    threads = str(_AT_ONCE + EACH_WRITER * writers)
    return {f"spark.sql.{pool}.maxThreadThreshold": threads for pool in POOLS}
