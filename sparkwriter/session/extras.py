"""Which jars beside everybody's a catalog or a database needs, by its properties. Pure.

A REST catalog tells clients their storage only when asked. So a configuration of such a catalog
has to name something of S3 itself: ``io-impl``, a ``warehouse`` with its scheme, or an ``s3.`` key.
"""

from __future__ import annotations

from collections.abc import Mapping

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
    """Name the extra with the driver of a database at ``jdbc:…``, unless ``conf`` brings it.

    MariaDB's driver reads MySQL, too.
    """
    told = ",".join(conf.get(key, "") for key in _WHERE_SPARK_IS_TOLD)
    name = "postgresql" if url.startswith("jdbc:postgresql:") else "mariadb"
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
