"""Debezium's JDBC sink connector, on a standalone worker, as an expert sets it.

- Upserts by the record's key, deletes on; the tables are there (``schema.evolution=none``).
- ``use.reduction.buffer``: the last change of each key in a batch. Without it each delete among
  the upserts of a table ends a batch.
- Polls and batches of so many records that a poll is written table by table, in one go; the drivers
  rewrite them to statements of many rows. The C3P0 pool needs one connection: there is one task for
  the one partition.
- Offsets are committed each half second (the default is a minute): the end is seen by them, for the
  sink commits what is written to the database. That is so much the later.
"""

from __future__ import annotations

import subprocess
import uuid
from dataclasses import replace
from pathlib import Path

import msgspec

from actors.runtime.jars import JarsError
from bench.compare.job import NAMESPACE, Begin, End, Job, Missing, read_job, tell
from bench.compare.topic import fill
from bench.peers.committed import await_committed
from bench.peers.connect_worker import LIST as WORKER
from bench.peers.connect_worker import ask, check_tasks, running
from bench.peers.jars import classpath, fetch_peer
from bench.peers.java_program import JavaFailed
from bench.peers.scratch_tables import SCRATCH, scratch_table, warm_up_workload
from bench.peers.spark_peer import WARM_ROUNDS, WARM_ROWS

LIST = "debezium-jdbc"
POLL_RECORDS = 20_000
"""3.3 kB each: a poll is 66 MB of JSON, in a heap of 2 GB."""
BATCH = 10_000
COMMIT_MS = 500
_LOOK_EVERY_S = 0.1

CONVERTER = "org.apache.kafka.connect.json.JsonConverter"
POLLED = {
    "key.converter": CONVERTER,
    "value.converter": CONVERTER,
    "offset.flush.interval.ms": str(COMMIT_MS),
    "consumer.max.poll.records": str(POLL_RECORDS),
    "consumer.max.partition.fetch.bytes": str(64 << 20),
    "consumer.fetch.max.bytes": str(64 << 20),
}
"""What the worker has beside its defaults."""

_DRIVERS = {
    "postgresql": "?reWriteBatchedInserts=true",
    "mariadb": "?useBulkStmts=true&rewriteBatchedStatements=true",
}
"""What each driver needs to send many rows at once."""


def connector(job: Job, name: str, namespace: str, topic: str) -> dict[str, str]:
    """The connector's properties."""
    kind = job.catalog["type"]
    # Of MariaDB's tables the sink's statements name no database: it is the connection's.
    place, table = ("", f"{namespace}.") if kind == "postgresql" else (namespace, "")
    return {
        "name": name,
        "connector.class": "io.debezium.connector.jdbc.JdbcSinkConnector",
        "tasks.max": "1",
        "topics": topic,
        "connection.url": job.catalog["url"] + place + _DRIVERS[kind],
        "connection.username": job.catalog["user"],
        "connection.password": "",
        "connection.pool.min_size": "1",
        "connection.pool.acquire_increment": "1",
        "insert.mode": "upsert",
        "delete.enabled": "true",
        "primary.key.mode": "record_key",
        "schema.evolution": "none",
        "collection.name.format": f"{table}${{source.table}}",
        "use.reduction.buffer": "true",
        "batch.size": str(BATCH),
        "errors.tolerance": "none",
    }


def main() -> None:
    """Write the job's rows, or say why that can't be."""
    job = read_job()
    try:
        for name in (WORKER, LIST):
            fetch_peer(name, Path(job.peer_jars))
        jars = Path(job.peer_jars)
        libraries, sink = classpath(jars / WORKER / "worker"), classpath(jars / LIST / "sink")
    except JarsError as problem:
        tell(Missing(str(problem)))
        return
    with running(job, libraries, sink, POLLED) as (port, process):
        _warm_up(job, port, process)
        name = f"jdbc-{uuid.uuid4().hex[:8]}"
        tell(Begin(process.pid))
        _write(job, port, process, connector(job, name, NAMESPACE, job.topic))
        tell(End(job.end, {"offset_flush_interval_ms": COMMIT_MS}))


def _write(job: Job, port: int, process: subprocess.Popen[bytes], config: dict[str, str]) -> None:
    """Have a connector write what the job has, to its end."""
    name = config["name"]
    ask(port, "/connectors", {"name": name, "config": config})
    await_committed(job, f"connect-{name}", _LOOK_EVERY_S, lambda: _check(process, port, name))


def _warm_up(job: Job, port: int, process: subprocess.Popen[bytes]) -> None:
    """A connector of the same kind writes as many rows as the others' warm-up into a table of its
    own, and goes."""
    workload = replace(warm_up_workload(job, WARM_ROWS * WARM_ROUNDS), name=uuid.uuid4().hex)
    end = fill(job.bootstrap, workload)
    with scratch_table(job):
        name = f"warm-{workload.name}"
        warm = msgspec.structs.replace(job, topic=workload.topic, end=end)
        _write(warm, port, process, connector(job, name, SCRATCH, workload.topic))
        ask(port, f"/connectors/{name}", method="DELETE")


def _check(process: subprocess.Popen[bytes], port: int, name: str) -> None:
    if process.poll() is not None:
        raise JavaFailed(f"the worker ended with code {process.returncode}")
    check_tasks(port, name)


if __name__ == "__main__":
    main()
