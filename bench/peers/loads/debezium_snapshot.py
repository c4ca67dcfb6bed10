"""Debezium's snapshot of the table on a standalone worker, and from the topic by binlogd.

As an expert sets it: 10,000 rows a fetch, batches of 16,384 records from a queue of four, polled
each 5 ms; producer batches of 1 MB in lz4. Records have their schemas: without them nobody behind
knows a decimal from a text. Threads of a snapshot are a table each, so this one has one.
2 GB of heap and all of Java's compilers. binlogd is the quickest sink that is compared here, so the
end is Debezium's own as far as it can be.

The end: all rows of the topic are in the table and committed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import msgspec

from actors.runtime.jars import JarsError
from actors.runtime.java import CHECKOUT
from bench.compare.dying import die_with_parent
from bench.compare.job import NAMESPACE, Begin, End, Job, Missing, read_job, tell
from bench.compare.topic import end_offset
from bench.peers import binlogd
from bench.peers.committed import await_committed
from bench.peers.connect_worker import ask, check_tasks, running
from bench.peers.tail import events
from collector.jars import collector_folder, worker_classpath
from daemon.config.file import load
from tests.live.jars import bring_collector

_LOOK_EVERY_S = 0.5
_DRAIN_WITHIN_S = 120.0
CONVERTER = "org.apache.kafka.connect.json.JsonConverter"
WORKER = {
    "key.converter": CONVERTER,
    "value.converter": CONVERTER,
    "plugin.discovery": "service_load",
    "producer.batch.size": str(1 << 20),
    "producer.linger.ms": "20",
    "producer.buffer.memory": str(64 << 20),
    "producer.compression.type": "lz4",
    "producer.acks": "1",
}


def connector(job: Job) -> dict[str, str]:
    """The connector's properties."""
    history = "schema.history.internal"
    return {
        "name": "snapshot",
        "connector.class": "io.debezium.connector.mariadb.MariaDbConnector",
        "tasks.max": "1",
        "database.hostname": job.source["host"], "database.port": job.source["port"],
        "database.user": job.source["user"], "database.password": job.source["password"],
        "database.server.id": "4711",
        "topic.prefix": "source",
        "table.include.list": f"{NAMESPACE}.{job.tables[0].name}",
        "snapshot.mode": "initial",
        "snapshot.locking.mode": "none",
        "snapshot.fetch.size": "10000",
        "max.batch.size": "16384", "max.queue.size": "65536", "poll.interval.ms": "5",
        "include.schema.changes": "false",
        "transforms": "one",
        "transforms.one.type": "org.apache.kafka.connect.transforms.RegexRouter",
        "transforms.one.regex": ".*", "transforms.one.replacement": job.topic,
        history: "io.debezium.storage.file.history.FileSchemaHistory",
        f"{history}.file.filename": f"{job.folder}/history",
        f"{history}.store.only.captured.databases.ddl": "true",
    }  # fmt: skip


def main() -> None:
    """Run both, or say why that can't be."""
    job = read_job()
    try:
        bring_collector()
    except JarsError as problem:
        tell(Missing(str(problem)))
        return
    path = Path(job.folder) / "config.toml"
    path.write_text(binlogd.configured(msgspec.structs.replace(job, format="debezium-json")))
    group = load(path).group("bench")
    debezium = os.pathsep.join(map(str, sorted(collector_folder("mariadb").glob("*.jar"))))
    with running(job, worker_classpath(), debezium, WORKER) as (port, worker):
        daemon = subprocess.Popen(
            [sys.executable, "-m", "daemon.cli", "run", "--config", str(path)],
            cwd=CHECKOUT,
            preexec_fn=die_with_parent,
        )
        for event in events(Path(job.folder) / "binlogd.log", daemon):
            if event["event"] == "running":
                break
        tell(Begin())
        began = time.monotonic()
        ask(port, "/connectors", {"name": "snapshot", "config": connector(job)})
        read_s: list[float] = []

        def look() -> None:
            _check(port, worker, daemon)
            if not read_s and end_offset(job.bootstrap, job.topic) >= job.end:
                read_s.append(time.monotonic() - began)

        await_committed(job, group, _LOOK_EVERY_S, look)
        read = read_s[0] if read_s else time.monotonic() - began
        figures = {"read_s": round(read, 1), "read_rows_per_s": round(job.end / read, 1)}
        tell(End(job.end, figures))
        daemon.terminate()
        daemon.wait(_DRAIN_WITHIN_S)


def _check(port: int, worker: subprocess.Popen[bytes], daemon: subprocess.Popen[bytes]) -> None:
    for process, what in ((worker, "the worker"), (daemon, "the daemon")):
        if process.poll() is not None:
            raise SystemExit(f"{what} ended with {process.returncode}")
    check_tasks(port, "snapshot")


if __name__ == "__main__":
    main()
