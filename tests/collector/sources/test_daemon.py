"""The whole daemon with a collector: killed, beside a broker that is killed; the table is equal."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Event
from time import monotonic
from typing import Any

import pytest

from daemon.state import control
from demo.broker import DevBroker
from demo.servers.mariadb import MariaDb
from tests.collector.running import records, rows
from tests.collector.sources.test_mariadb import made, source

pytestmark = [pytest.mark.integration, pytest.mark.long, pytest.mark.timeout(450)]

_FILE = """
{broker}
[daemon]
state_dir = "state"
staging_dir = "staging"
commit_interval_s = 0.5
[batch]
max_age_s = 0.5
[connect]
group = "{name}"
[sink.copy]
kind = "sqlite"
path = "copy.db"
[database.shop]
{database}
[collector.shop]
database = "shop"
topic = "{name}"
heartbeat_s = 1
[pipeline.shop]
collector = "shop"
include = ["{name}.*"]
target = "copy.{{database}}.{{table}}"
"""


class Run:
    """``binlogd run`` as people have it."""

    def __init__(self, folder: Path, text: str) -> None:
        self.folder = folder
        (folder / "config.toml").write_text(text)
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [
            sys.executable,
            "-m",
            "daemon.cli",
            "run",
            "-c",
            str(self.folder / "config.toml"),
        ]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)

    def kill(self, number: int = signal.SIGKILL) -> int:
        assert self.process is not None
        os.kill(self.process.pid, number)
        return self.process.wait(60)

    def collector(self) -> dict[str, Any]:
        """As the status shows it; nothing where no daemon answers."""
        try:
            found = control.ask(self.folder / "state", {"ask": "status"})
        except control.ControlError:
            return {}
        return next(iter(found["collectors"]), {})

    def command(self, *words: str) -> subprocess.CompletedProcess[str]:
        config = str(self.folder / "config.toml")
        command = [sys.executable, "-m", "daemon.cli", *words, "-c", config]
        return subprocess.run(command, capture_output=True, text=True, timeout=60)

    def until(self, so: Callable[[], bool], within_s: float = 150) -> None:
        deadline, pause = monotonic() + within_s, Event()
        while not so():
            tail = (self.folder / "log").read_text()[-3000:]
            assert monotonic() < deadline, f"{self.collector()}\n{tail}"
            pause.wait(0.5)

    def reads(self) -> bool:
        found = self.collector()
        return found.get("state") == "running" and bool(found["position"])

    def stored(self, name: str) -> list[int]:
        """The keys of the target's rows."""
        with sqlite3.connect(self.folder / "copy.db") as copy:
            try:
                return sorted(key for (key,) in copy.execute(f'SELECT id FROM "{name}.t"'))
            except sqlite3.OperationalError:
                return []


def test_each_change_is_there_once_whatever_is_killed(
    tmp_path: Path, mariadb: MariaDb, name: str
) -> None:
    """The daemon, so its worker too, and the broker, each amid transactions: the topic, read
    committed, has each row once and in order, and the table has them all."""
    made(mariadb, name)
    with DevBroker(tmp_path / "broker") as broker:
        run = Run(tmp_path, _FILE.format(
            broker=f'[kafka]\nbootstrap.servers = "{broker.bootstrap}"', name=name,
            database=source(mariadb),
        ))  # fmt: skip
        run.start()
        run.until(run.reads)
        ids = iter(range(2, 1000))
        wanted = []

        def work(transactions: int) -> None:
            for _ in range(transactions):
                one, two = next(ids), next(ids)
                wanted.extend((one, two))
                assert not mariadb.run(["BEGIN", f"INSERT INTO {name}.t VALUES ({one}, 1)",
                    f"INSERT INTO {name}.t VALUES ({two}, 1)", "COMMIT"])  # fmt: skip

        work(30)
        run.kill()
        work(30)
        run.start()
        run.until(run.reads)
        work(30)
        broker.kill()
        work(30)
        broker.start()
        work(10)
        run.until(lambda: run.stored(name) == wanted, 240)
        holds_each_once(broker, name, wanted)
        obeys(run)
        assert run.kill(signal.SIGTERM) == 0
        secrets = [path.read_text() for path in (tmp_path / "state").rglob("*.jsonl")]
        assert "first" not in (tmp_path / "log").read_text() + "".join(secrets)


def test_all_comes_along_with_the_daemon(tmp_path: Path, mariadb: MariaDb, name: str) -> None:
    """The broker with its secret, the worker that enters by it, the connector: killed with the
    daemon, and back with it."""
    made(mariadb, name)
    run = Run(tmp_path, _FILE.format(
        broker="[broker]\nembedded = true", name=name, database=source(mariadb)
    ))  # fmt: skip
    run.start()
    run.until(run.reads)
    assert not mariadb.run([f"INSERT INTO {name}.t VALUES (1, 1)"])
    run.until(lambda: run.stored(name) == [1])
    run.kill()
    assert not mariadb.run([f"INSERT INTO {name}.t VALUES (2, 1)"])
    run.start()
    run.until(lambda: run.stored(name) == [1, 2])
    assert run.kill(signal.SIGTERM) == 0


def holds_each_once(broker: DevBroker, name: str, wanted: list[int]) -> None:
    """The topic itself; a boundary that came again counts nothing, and the END of a transaction
    that a kill cut in two counts what came behind the kill (docs/collector.md)."""
    assert [one["after"]["id"] for one in rows(broker, name, "t")] == wanted
    ends = [one for one in records(broker, name) if one.get("status") == "END"]
    assert 0 < sum(one["event_count"] for one in ends) <= len(wanted)


def obeys(run: Run) -> None:
    """Commands reach the running daemon."""
    shown = run.command("collector", "status", "--json")
    assert (shown.returncode, json.loads(shown.stdout)[0]["state"]) == (0, "running")
    assert run.command("collector", "pause", "shop").returncode == 0
    run.until(lambda: run.collector()["state"] == "paused")
    assert run.command("collector", "resume", "shop").returncode == 0
    run.until(run.reads)


def test_a_table_that_can_not_be_loaded_holds_up_no_other(
    tmp_path: Path, mariadb: MariaDb, name: str
) -> None:
    """After a reset: one without a key is told, the others are loaded."""
    made(mariadb, name)
    assert not mariadb.run([f"CREATE TABLE {name}.keyless (id INT)"])
    run = Run(tmp_path, _FILE.format(
        broker="[broker]\nembedded = true", name=name, database=source(mariadb)
    ))  # fmt: skip
    run.start()
    run.until(run.reads)
    assert run.command("collector", "reset", "shop", "--execute").returncode == 0
    run.until(lambda: "keyless" in run.collector()["reason"])
    ids = iter(range(1, 1000))

    def loaded() -> bool:
        # A load ends at a change that is behind it.
        assert not mariadb.run([f"INSERT INTO {name}.t VALUES ({next(ids)}, 1)"])
        return 0 in run.stored(name)

    run.until(loaded)
    assert run.collector()["state"] == "running"
    assert run.kill(signal.SIGTERM) == 0
