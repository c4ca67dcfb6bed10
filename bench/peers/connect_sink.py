"""The Iceberg sink of Kafka Connect, on a standalone worker: rows are appended to one table.

- The worker is the newest on Maven Central, 4.3.1; the sink has no distribution there, so its
  plugin folder is put together from its own jar and what it needs (``connect.xml``).
- It takes a message for a row: it can't unnest the rows of a Canal message, and no transform that
  comes with it or with Connect can. So it reads a copy of the topic, made before the clock begins,
  with a flat JSON message for each row (``{"id": "1", ...}``, 150 B instead of 500): much less to
  read and to parse than the others have.
- The table is made before, with the types it is to have; the sink turns Canal's texts into them.
- A commit every 5 s (its default is 300 s); one task for the one partition. Polls of up to 200,000
  messages: with 10,000 it takes 8,300 rows/s, with these 72,000 (measured).
- The worker and its plugins are up before the clock begins; it begins when the connector is asked
  for, and ends when the table's newest snapshot counts every row.
"""

from __future__ import annotations

import os
import sqlite3
import subprocess
import time
import uuid
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from actors.runtime.jars import JarsError
from bench.compare.job import (
    CATALOG,
    NAMESPACE,
    Begin,
    End,
    Job,
    Missing,
    TableSpec,
    read_job,
    tell,
)
from bench.peers.connect_worker import ANSWER_WITHIN_S, LIST, ask, check_tasks, lines, running
from bench.peers.copied_topic import copied_topic
from bench.peers.jars import classpath, fetch_peer
from bench.peers.java_program import JavaFailed, compile_class, run_class

COMMIT_INTERVAL_MS = 5000
_LOOK_EVERY_S = 0.1
"""How late the end may be seen: small against the commit interval, and no load."""
POLLED = {
    "value.converter.schemas.enable": "false",
    "consumer.max.poll.records": "200000",
    "consumer.max.partition.fetch.bytes": str(64 << 20),
    "consumer.fetch.max.bytes": str(64 << 20),
}
"""What the worker has beside its defaults."""

_TYPES = {"BIGINT": "long", "INT": "int", "STRING": "string", "TIMESTAMP_NTZ": "timestamp"}
"""Iceberg's names of types, where they are not Spark's in small letters."""


class _Rows(msgspec.Struct):
    data: list[msgspec.Raw]


_rows = msgspec.json.Decoder(_Rows)


def flat(value: bytes) -> Iterator[tuple[None, bytes]]:
    """A Canal message's rows, a message for each."""
    for row in _rows.decode(value).data:
        yield None, bytes(row)


def connector(job: Job, topic: str, name: str) -> dict[str, str]:
    """The connector's properties; its control topic has its own name."""
    (table,) = job.tables
    catalog = {key: value for key, value in job.catalog.items() if key != "type"}
    catalog["catalog-impl"] = "org.apache.iceberg.jdbc.JdbcCatalog"
    return {
        "name": name,
        "connector.class": "org.apache.iceberg.connect.IcebergSinkConnector",
        "tasks.max": "1",
        "topics": topic,
        "iceberg.tables": f"{NAMESPACE}.{table.name}",
        "iceberg.catalog": CATALOG,
        **{f"iceberg.catalog.{key}": value for key, value in catalog.items()},
        "iceberg.control.topic": name,
        "iceberg.control.commit.interval-ms": str(COMMIT_INTERVAL_MS),
        "iceberg.kafka.bootstrap.servers": job.bootstrap,
    }


def schema(table: TableSpec) -> dict[str, Any]:
    """The table's schema as Iceberg writes it."""
    fields = [
        {"id": number, "name": column.name, "required": False,
         "type": _TYPES.get(column.spark, column.spark.lower())}
        for number, column in enumerate(table.columns, start=1)
    ]  # fmt: skip
    return {"type": "struct", "schema-id": 0, "fields": fields}


def visible_rows(catalog: str, table: str) -> int:
    """How many rows a table of the catalog's file has, by its newest snapshot."""
    with closing(sqlite3.connect(f"file:{catalog}?mode=ro", uri=True, timeout=60.0)) as file:
        (location,) = file.execute(
            "SELECT metadata_location FROM iceberg_tables WHERE catalog_name = ?"
            " AND table_namespace = ? AND table_name = ?",
            (CATALOG, NAMESPACE, table),
        ).fetchone()
    metadata = msgspec.json.decode(Path(location.removeprefix("file:")).read_bytes())
    newest = metadata.get("current-snapshot-id")
    for snapshot in metadata.get("snapshots", ()):
        if snapshot["snapshot-id"] == newest:
            return int(snapshot["summary"]["total-records"])
    return 0


def main() -> None:
    """Append the job's rows, or say why that can't be."""
    job = read_job()
    if job.format != "canal-json" or job.mode != "append" or len(job.tables) != 1:
        tell(Missing("it appends Canal's rows to one table, and does nothing else here"))
        return
    try:
        fetch_peer(LIST, Path(job.peer_jars))
        jars = Path(job.peer_jars) / LIST
        compiler, libraries = classpath(jars / "compiler"), classpath(jars / "worker")
        sink = os.pathsep.join([classpath(jars / "sink"), *map(str, _sqlite(job))])
    except JarsError as problem:
        tell(Missing(str(problem)))
        return
    # The sink's own versions first; the logger is the worker's.
    _make_table(job, compiler, os.pathsep.join([sink, libraries]))
    with (
        copied_topic(job, flat) as (topic, count),
        running(job, libraries, sink, POLLED) as (port, process),
    ):
        name = f"connect-{uuid.uuid4().hex[:8]}"
        admin = AdminClient({"bootstrap.servers": job.bootstrap})
        admin.create_topics([NewTopic(name, 1, 1)])[name].result(ANSWER_WITHIN_S)
        tell(Begin(process.pid))
        ask(port, "/connectors", {"name": name, "config": connector(job, topic, name)})
        _await_rows(job, count, port, name, process)
        tell(End(job.end, {"commit_interval_ms": COMMIT_INTERVAL_MS}))


def _sqlite(job: Job) -> list[Path]:
    return sorted((Path(job.jars) / "lake").glob("sqlite-jdbc-*.jar"))


def _make_table(job: Job, compiler: str, libraries: str) -> None:
    folder = Path(job.folder)
    compile_class("MakeTables", compiler, libraries, folder)
    properties, (table,) = folder / "catalog.properties", job.tables
    properties.write_text(lines(job.catalog))
    described = folder / f"{table.name}.json"
    described.write_bytes(msgspec.json.encode(schema(table)))
    path = os.pathsep.join([str(folder), libraries])
    arguments = (CATALOG, NAMESPACE, properties, described)
    for line in run_class("MakeTables", path, arguments, folder / "tables.log"):
        raise JavaFailed(f"MakeTables said: {line}")


def _await_rows(
    job: Job, count: int, port: int, name: str, process: subprocess.Popen[bytes]
) -> None:
    """Return when the table has so many rows; raises JavaFailed where the sink has failed."""
    catalog, table = job.catalog["uri"].removeprefix("jdbc:sqlite:"), job.tables[0].name
    while visible_rows(catalog, table) < count:
        time.sleep(_LOOK_EVERY_S)
        if process.poll() is not None:
            raise JavaFailed(f"the worker ended with code {process.returncode}")
        check_tasks(port, name)


if __name__ == "__main__":
    main()
