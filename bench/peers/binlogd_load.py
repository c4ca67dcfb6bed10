"""``tables load`` by binlogd as it is installed: a running daemon, its defaults, one command.

The pipeline's topic has nothing but a heartbeat, five a second, without which no load of an idle
source would end. The clock runs from the command to the job's end, and so over what the load waits
for: ``load.margin_s`` before it reads, and what comes behind the rows. ``read_rows_per_s`` is of
the time between.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from pathlib import Path

from confluent_kafka import Producer

from bench.compare.dying import die_with_parent
from bench.compare.job import NAMESPACE, Begin, End, Job, read_job, tell
from bench.peers import binlogd
from bench.peers.tail import events
from sparkwriter.session.jars import JarsError, fetch_extra
from sparkwriter.session.java import CHECKOUT

SOURCE = """
[database.source]
url = "jdbc:mariadb://{host}:{port}/"
user = "{user}"
password = "{password}"
"""
PIPELINE = 'database = "source"\nexclude = ["*.beat"]\n'
_BEAT_EVERY_S = 0.2
_DRAIN_WITHIN_S = 120.0
_MARGIN = re.compile(r"is read in (\d+) s")


def main() -> None:
    """Run the daemon, load the table, say how long the reading took."""
    job = read_job()
    fetch_extra("mariadb")
    path = Path(job.folder) / "config.toml"
    path.write_text(binlogd.configured(job) + PIPELINE + SOURCE.format(**job.source))
    ended = threading.Event()
    beats = threading.Thread(target=_beat, args=(job, ended), daemon=True)
    daemon = subprocess.Popen(
        [sys.executable, "-m", "daemon.cli", "run", "--config", str(path)],
        cwd=CHECKOUT,
        preexec_fn=die_with_parent,
    )
    beats.start()
    for event in events(Path(job.folder) / "binlogd.log", daemon):
        if event["event"] == "running":
            tell(Begin())
            figures = _loaded(path, job)
            tell(End(job.end, figures))
            daemon.terminate()
            break
    ended.set()
    sys.exit(daemon.wait(_DRAIN_WITHIN_S))


def _loaded(config: Path, job: Job) -> dict[str, float]:
    """Load the table. Raises SystemExit where the load fails."""
    table = f"{NAMESPACE}.{job.tables[0].name}"
    command = subprocess.Popen(
        [sys.executable, "-u", "-m", "daemon.cli", "tables", "load", table, "--wait",
         "--config", str(config)],
        cwd=CHECKOUT, stdout=subprocess.PIPE, text=True, preexec_fn=die_with_parent,
    )  # fmt: skip
    assert command.stdout is not None
    begun_s, ended_s = reading(command.stdout, f" {job.end:,} rows: ")
    if command.wait():
        raise SystemExit(f"the load has failed: {command.returncode}")
    read_s = ended_s - begun_s
    return {"read_s": round(read_s, 1), "read_rows_per_s": round(job.end / read_s, 1)}


def reading(lines: Iterable[str], all_rows: str) -> tuple[float, float]:
    """When the first range began to be read, and when the last one was written: what the command
    says, each half second. ``all_rows``: what the line has when all are."""
    begun_s = ended_s = 0.0
    for line in lines:
        print(f"{time.monotonic():.1f} {line}", end="", file=sys.stderr, flush=True)
        if (found := _MARGIN.search(line)) and not begun_s:
            begun_s = time.monotonic() + int(found[1])
        if begun_s and not ended_s and all_rows in line:
            ended_s = time.monotonic()
    if not begun_s or not ended_s:
        raise SystemExit("the command did not say when it read")
    return begun_s, ended_s


def _beat(job: Job, ended: threading.Event) -> None:
    """A change of another table, again and again."""
    producer = Producer({"bootstrap.servers": job.bootstrap, "linger.ms": 5})
    while not ended.wait(_BEAT_EVERY_S):
        now_ms = time.time_ns() // 1_000_000
        row = {"id": "1", "at": str(now_ms)}
        message = {
            "id": 1, "database": NAMESPACE, "table": "beat", "isDdl": False, "type": "INSERT",
            "sql": "", "es": now_ms, "ts": now_ms, "pkNames": ["id"], "data": [row], "old": None,
            "mysqlType": {"id": "bigint(20)", "at": "bigint(20)"}, "sqlType": {"id": -5, "at": -5},
        }  # fmt: skip
        producer.produce(job.topic, json.dumps(message).encode(), partition=0)
        producer.poll(0)


if __name__ == "__main__":
    try:
        main()
    except JarsError as problem:
        raise SystemExit(str(problem)) from problem
