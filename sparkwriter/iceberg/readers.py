"""How people read a lake's tables: by DuckDB, PyIceberg, Spark and Trino. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping

from actors.runtime.jars import read_lock
from changes.model.model import TargetName
from changes.sql.quoted import quoted
from sparkwriter.iceberg.local_tables import metadata_of
from sparkwriter.kit.queries import NoAnswer
from sparkwriter.kit.readers import HowToRead, by_query, spelt

_SQLITE = "jdbc:sqlite:"
_PACKAGES = {
    "iceberg-spark-runtime": "org.apache.iceberg",
    "sqlite-jdbc": "org.xerial",
}
_TRINO = {
    "rest": ("rest", {"uri": "iceberg.rest-catalog.uri"}),
    "hive": ("hive_metastore", {"uri": "hive.metastore.uri"}),
}
"""Of a catalog's type: Trino's, and how it names the properties."""


def lake_readers(sink: str, catalog: Mapping[str, str], target: TargetName) -> Iterator[HowToRead]:
    """A text a tool that can read this catalog's tables. Secrets of the catalog stay as given."""
    kind, uri = catalog.get("type", ""), catalog.get("uri", "")
    yield from _duckdb(catalog, target)
    if (config := _pyiceberg(kind, uri, catalog)) is not None:
        names = repr((*target.namespace.split("."), target.table))
        load = f"load_catalog({sink!r}, **{config!r})"
        yield HowToRead(
            "PyIceberg (refuses equality deletes)",
            f"from pyiceberg.catalog import load_catalog\n"
            f"print({load}.load_table({names}).scan().to_arrow())",
        )
    yield HowToRead("Spark", _spark(sink, catalog, target))
    if kind in _TRINO:
        name, keys = _TRINO[kind]
        lines = [f"{theirs}={catalog[ours]}" for ours, theirs in keys.items() if ours in catalog]
        properties = "\n".join(["connector.name=iceberg", f"iceberg.catalog.type={name}", *lines])
        query = f"SELECT * FROM {spelt(*target)}"
        yield HowToRead(
            "Trino", f"-- etc/catalog/{sink}.properties:\n{properties}\n-- then:\n{query}"
        )


def _duckdb(catalog: Mapping[str, str], target: TargetName) -> Iterator[HowToRead]:
    install = "INSTALL iceberg; LOAD iceberg;"
    if catalog.get("type") == "rest":
        warehouse, endpoint = catalog.get("warehouse", ""), catalog.get("uri", "")
        attach = f"ATTACH {quoted(warehouse)} AS {spelt(target.sink)}"
        options = f"(TYPE iceberg, ENDPOINT {quoted(endpoint)}, AUTHORIZATION_TYPE 'none')"
        yield HowToRead(
            "DuckDB", f"{install}\n{attach} {options};\nSELECT * FROM {spelt(*target)};"
        )
        return
    try:
        path = metadata_of(catalog, target)
    except NoAnswer:
        return
    yield by_query(target)
    scan = f"SELECT * FROM iceberg_scan({quoted(str(path))});"
    yield HowToRead("DuckDB (the file's name changes with each write)", f"{install}\n{scan}")


def _pyiceberg(kind: str, uri: str, catalog: Mapping[str, str]) -> dict[str, str] | None:
    """A catalog's properties for it, None for one that it can't open."""
    rest = {name: value for name, value in catalog.items() if name.startswith("s3.")}
    place = {"warehouse": catalog["warehouse"]} if "warehouse" in catalog else {}
    if kind == "jdbc" and uri.startswith(_SQLITE):
        path = uri.removeprefix(_SQLITE).removeprefix("file:")
        return {"type": "sql", "uri": f"sqlite:///{path}", **place, **rest}
    if kind == "jdbc":
        return {"type": "sql", "uri": uri.removeprefix("jdbc:"), **place, **rest}
    if kind in ("rest", "hive"):
        return {"type": kind, "uri": uri, **place, **rest}
    return None


def _spark(sink: str, catalog: Mapping[str, str], target: TargetName) -> str:
    prefix = f"spark.sql.catalog.{sink}"
    settings = {prefix: "org.apache.iceberg.spark.SparkCatalog"}
    settings |= {f"{prefix}.{name}": value for name, value in catalog.items()}
    wanted = ["iceberg-spark-runtime"]
    if catalog.get("uri", "").startswith(_SQLITE):
        wanted.append("sqlite-jdbc")
    packages = ",".join(_coordinates(name) for name in wanted)
    query = f"SELECT * FROM {spelt(*target, mark='`')}"
    lines = [f"spark-sql --packages {packages}"]
    lines += [f"  --conf {shlex.quote(f'{name}={value}')}" for name, value in settings.items()]
    lines.append(f"  -e {shlex.quote(query)}")
    return " \\\n".join(lines)


def _coordinates(name: str) -> str:
    """A jar of ours as Maven names it: its file is named after the artifact and the version."""
    (file,) = (each for each in read_lock() if each.rpartition("/")[2].startswith(name))
    artifact, _, version = file.rpartition("/")[2].removesuffix(".jar").rpartition("-")
    return f"{_PACKAGES[name]}:{artifact}:{version}"
