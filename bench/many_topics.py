"""``python -m bench.many_topics``: a topic a table, by one pattern, as Debezium makes them.

A broker of its own, so many topics with a few rows each, and a daemon that takes them by a pattern
into a file of SQLite. Prints what the first run takes until all rows are there, and what the daemon
takes a second once nothing comes any more.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from actors.runtime.java import CHECKOUT
from bench.compare.dying import die_with_parent
from bench.compare.measure import Meter, family
from demo.broker import DevBroker

HEAP_MB = 2048
_AT_ONCE = 200
_WITHIN_S = 120.0
_IDLE_S = 60.0
CONFIG = """
[daemon]
state_dir = "state"
staging_dir = "staging"
[kafka]
"bootstrap.servers" = "{bootstrap}"
[log]
level = "warning"
[metrics]
listen = "127.0.0.1:0"
[sink.copy]
kind = "sqlite"
path = "copy.db"
[pipeline.shop]
topics = ["^shop\\\\."]
format = "canal-json"
start = "earliest"
target = "copy.{{database}}.{{table}}"
"""


def fill(bootstrap: str, topics: int, rows: int) -> None:
    """Make the topics, each with so many rows of a table of its own."""
    names = [f"shop.t{number}" for number in range(topics)]
    client = AdminClient({"bootstrap.servers": bootstrap})
    for first in range(0, topics, _AT_ONCE):
        made = client.create_topics([NewTopic(n, 1, 1) for n in names[first : first + _AT_ONCE]])
        for future in made.values():
            future.result(_WITHIN_S)
    producer = Producer({"bootstrap.servers": bootstrap})
    for name in names:
        for key in range(rows):
            producer.produce(name, message(name.partition(".")[2], key))
            producer.poll(0)
    producer.flush(_WITHIN_S)


def message(table: str, key: int) -> bytes:
    """An insert, as Canal writes it."""
    return json.dumps(
        {
            "database": "shop", "table": table, "type": "INSERT", "isDdl": False, "pkNames": ["id"],
            "es": 1, "ts": 1, "sqlType": {"id": -5, "name": 12},
            "mysqlType": {"id": "bigint", "name": "varchar(20)"}, "old": None,
            "data": [{"id": str(key), "name": f"name {key}"}],
        }
    ).encode()  # fmt: skip


def rows_in(file: Path, topics: int) -> int:
    """How many rows its tables have."""
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as session:
        counts = (
            session.execute(f'SELECT count(*) FROM "shop.t{number}"').fetchone()[0]
            for number in range(topics)
        )
        return sum(counts)


def main() -> None:
    """Run it once."""
    parser = argparse.ArgumentParser(prog="python -m bench.many_topics", description=__doc__)
    parser.add_argument("--topics", type=int, default=3000)
    parser.add_argument("--rows", type=int, default=5, help="of each topic")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="binlogd-topics-") as made:
        folder = Path(made)
        with DevBroker(folder / "broker", heap_mb=HEAP_MB) as broker:
            fill(broker.bootstrap, options.topics, options.rows)
            (folder / "config.toml").write_text(CONFIG.format(bootstrap=broker.bootstrap))
            print(f"{options.topics:,} topics are filled", flush=True)
            _first_run(folder, options.topics, options.topics * options.rows)
            _idle(folder)


def _started(folder: Path, *words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "daemon.cli", "run", "--config", str(folder / "config.toml"),
         *words],
        cwd=CHECKOUT, preexec_fn=die_with_parent,
    )  # fmt: skip


def _first_run(folder: Path, topics: int, rows: int) -> None:
    began = time.monotonic()
    daemon = _started(folder, "--until-caught-up")
    meter = Meter(daemon.pid)
    meter.start()
    while daemon.poll() is None:
        time.sleep(0.5)
    seconds, used = time.monotonic() - began, meter.stop()
    if daemon.returncode:
        raise SystemExit(f"it has ended with status {daemon.returncode}")
    if (found := rows_in(folder / "copy.db", topics)) != rows:
        raise SystemExit(f"{found} of {rows} rows")
    print(
        f"first run: {seconds:.0f} s until all {rows:,} rows are there, "
        f"{used.rss_mb:.0f} MB at most",
        flush=True,
    )


def _idle(folder: Path) -> None:
    daemon = _started(folder)
    began = time.monotonic()
    while not (status := _status(folder)) or status["state"] != "running" or not status["ready"]:
        if daemon.poll() is not None:
            raise SystemExit(f"it has ended: {daemon.returncode}")
        time.sleep(0.5)
    ready_s = time.monotonic() - began
    before = sum(process.cpu_s for process in family(daemon.pid))
    time.sleep(_IDLE_S)
    every = family(daemon.pid)
    cpu = (sum(process.cpu_s for process in every) - before) / _IDLE_S
    rss = sum(process.rss_mb for process in every)
    print(
        f"second start: ready after {ready_s:.0f} s; "
        f"idle: {100 * cpu:.1f} % of a core, {rss:.0f} MB"
    )
    daemon.terminate()
    daemon.wait(_WITHIN_S)


def _status(folder: Path) -> dict[str, object] | None:
    done = subprocess.run(
        [sys.executable, "-m", "daemon.cli", "status", "--json", "--state-dir",
         str(folder / "state")],
        cwd=CHECKOUT, capture_output=True, check=False,
    )  # fmt: skip
    return json.loads(done.stdout) if done.stdout else None


if __name__ == "__main__":
    main()
