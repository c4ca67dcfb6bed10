"""``tables load`` by binlogd as it is installed: a running daemon, its defaults, one command.

The pipeline's topic has nothing but a heartbeat, five a second, without which no load of an idle
source would end: a row of the database that changes, in messages as Debezium writes them, with
their positions. The clock runs from the command to the job's end, and so over what the load waits
for, before it reads and behind the rows. ``read_rows_per_s`` is of the time between.

``variant``: keys of ``[load]``.
"""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec
import pymysql
from confluent_kafka import Producer

from actors.runtime.jars import JarsError, fetch_extra
from actors.runtime.java import CHECKOUT
from bench.compare.dying import die_with_parent
from bench.compare.job import NAMESPACE, Begin, End, Job, read_job, tell
from bench.peers import binlogd
from bench.peers.tail import events

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
    text = binlogd.configured(msgspec.structs.replace(job, format="debezium-json", variant={}))
    load = [f"{name} = {value}\n" for name, value in job.variant.items()]
    path.write_text(f"{text}{PIPELINE}{SOURCE.format(**job.source)}[load]\n{''.join(load)}")
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
        if " 0 rows: " in line and not ended_s:
            found = _MARGIN.search(line)
            begun_s = time.monotonic() + (int(found[1]) if found else 0)
        if begun_s and not ended_s and all_rows in line:
            ended_s = time.monotonic()
    if not begun_s or not ended_s:
        raise SystemExit("the command did not say when it read")
    return begun_s, ended_s


def _beat(job: Job, ended: threading.Event) -> None:
    """A change of another table, again and again."""
    producer = Producer({"bootstrap.servers": job.bootstrap, "linger.ms": 5})
    source = job.source
    with pymysql.connect(
        host=source["host"], port=int(source["port"]), user=source["user"],
        password=source["password"], autocommit=True,
    ) as session, session.cursor() as cursor:  # fmt: skip
        cursor.execute(f"CREATE OR REPLACE TABLE {NAMESPACE}.beat (id INT PRIMARY KEY, n INT)")
        cursor.execute(f"INSERT INTO {NAMESPACE}.beat VALUES (1, 0)")
        for number in itertools.count(1):
            if ended.wait(_BEAT_EVERY_S):
                return
            cursor.execute("SHOW MASTER STATUS")
            file, pos = cursor.fetchone()[:2]
            cursor.execute(f"UPDATE {NAMESPACE}.beat SET n = {number}")
            cursor.execute("SELECT @@last_gtid")
            place = {"gtid": cursor.fetchone()[0], "file": file, "pos": pos}
            producer.produce(job.topic, json.dumps(_message(number, place)).encode(), partition=0)
            producer.poll(0)


def _message(number: int, place: Mapping[str, object]) -> dict[str, object]:
    """Debezium's, of an update."""
    now_ms = time.time_ns() // 1_000_000
    source = {
        "connector": "mariadb", "name": "bench", "db": NAMESPACE, "table": "beat",
        "snapshot": "false", "ts_ms": now_ms, **place,
    }  # fmt: skip
    images = {"before": {"id": 1, "n": number - 1}, "after": {"id": 1, "n": number}}
    return {**images, "source": source, "op": "u", "ts_ms": now_ms}


if __name__ == "__main__":
    try:
        main()
    except JarsError as problem:
        raise SystemExit(str(problem)) from problem
