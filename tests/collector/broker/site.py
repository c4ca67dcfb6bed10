"""A daemon with its embedded broker and a file of SQLite, as somebody on this machine runs it."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from collector.broker.home import BrokerHome
from daemon.state import control
from tests.integration.rig import canal
from tests.test_ratchet import ROOT

WITHIN_S = 90.0
TOPIC = "shop"


class Site:
    """One folder: configuration, state, the file of tables. Ends what it has started."""

    def __init__(self, folder: Path, broker: str = "", more: str = "") -> None:
        self.folder = folder
        self.state = folder / "state"
        self.home = BrokerHome(self.state, 0)
        self.config = folder / "config.toml"
        self.rows = 0
        self.config.write_text(f"""\
[broker]
embedded = true
{broker}
[daemon]
state_dir = "state"
staging_dir = "staging"
commit_interval_s = 0.2
[batch]
max_age_s = 0.1
[sink.copy]
kind = "sqlite"
path = "copy.db"
[pipeline.p]
topics = ["{TOPIC}"]
format = "canal-json"
[[pipeline.p.route]]
target = "copy.{{database}}.{{table}}"
{more}
""")
        self._daemon: subprocess.Popen[str] | None = None

    def start(self, *before: str | Path, program: Sequence[str] = ()) -> None:
        """Start the daemon, and return when its pipeline runs. ``before``: words of a tracer;
        ``program``: what Python runs instead of the command."""
        daemon = program or ("-m", "daemon.cli")
        with (self.folder / "daemon.log").open("ab") as log:
            self._daemon = subprocess.Popen(
                [*before, sys.executable, *daemon, "run", "-c", str(self.config)],
                cwd=ROOT, stdout=log, stderr=subprocess.STDOUT, text=True, start_new_session=True,
            )  # fmt: skip
        self.until(lambda: self.status() is not None and self.pipeline()["assigned"])

    @property
    def pid(self) -> int:
        assert self._daemon is not None
        return self._daemon.pid

    def said(self) -> str:
        """What the daemon has logged."""
        return (self.folder / "daemon.log").read_text(errors="replace")

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """End it by a signal; gives its status."""
        assert self._daemon is not None
        found = self.status()
        os.kill(self._daemon.pid if found is None else found["pid"], number)  # not its tracer
        return self._daemon.wait(WITHIN_S)

    def close(self) -> None:
        """Kill what runs. The broker goes with it."""
        if self._daemon is not None and self._daemon.poll() is None:
            os.killpg(self._daemon.pid, signal.SIGKILL)
            self._daemon.wait()

    def binlogd(self, *words: str) -> subprocess.CompletedProcess[str]:
        """A command of its user."""
        return subprocess.run(
            [sys.executable, "-m", "daemon.cli", *words, "-c", str(self.config)],
            cwd=ROOT, capture_output=True, text=True, timeout=WITHIN_S, check=False,
        )  # fmt: skip

    def status(self) -> dict[str, Any] | None:
        """The status document; None while nobody answers."""
        try:
            found = control.ask(self.state, {"ask": "status"})
        except (control.ControlError, OSError):
            return None
        return found if "pipelines" in found else None

    def pipeline(self) -> dict[str, Any]:
        found = self.status()
        assert found is not None
        return found["pipelines"][0]  # type: ignore[no-any-return]

    def broker(self) -> dict[str, Any]:
        """The broker as the status document has it."""
        found = self.status()
        assert found is not None
        return found["programs"][0]  # type: ignore[no-any-return]

    def confirmed(self) -> int | None:
        """The position that is stored, as the daemon shows it."""
        found = self.pipeline()["partitions"]
        return found[0]["confirmed"] if found else None

    def produce(self, count: int, topic: str = TOPIC) -> None:
        """Insert so many rows at the source; returns when the broker has all of them."""
        self.produce_to(self.home.client_settings(), count, topic)

    def produce_to(self, settings: Mapping[str, Any], count: int, topic: str = TOPIC) -> None:
        """The same into another Kafka."""
        failed: list[str] = []
        producer = Producer({**settings, "acks": "all", "log_level": 0})
        for _ in range(count):
            self.rows += 1
            row = {"id": self.rows, "name": f"row {self.rows}", "qty": 1}
            producer.produce(
                topic, canal("shop.items", "INSERT", [row]),
                on_delivery=lambda error, _: failed.append(str(error)) if error else None,
            )  # fmt: skip
            producer.poll(0)
        assert producer.flush(WITHIN_S) == 0, "not delivered"
        assert not failed, failed[0]

    def stored(self) -> int:
        """How many different rows the table has; fails where one is there twice."""
        if not (self.folder / "copy.db").exists():
            return 0
        with closing(sqlite3.connect(self.folder / "copy.db")) as file:
            try:
                query = 'SELECT count(*), count(DISTINCT id) FROM "shop.items"'
                every, different = file.execute(query).fetchone()
            except sqlite3.OperationalError:  # no table yet
                return 0
        assert every == different
        return int(different)

    def applied(self) -> None:
        """Wait until all that was produced is stored."""
        self.until(lambda: self.stored() == self.rows)

    def until(self, is_so: Callable[[], Any], within_s: float = WITHIN_S) -> None:
        """Wait until something is so, while the daemon runs."""
        deadline, pause = threading.Event(), threading.Event()
        timer = threading.Timer(within_s, deadline.set)
        timer.start()
        try:
            while not is_so():
                ended = self._daemon is not None and self._daemon.poll() is not None
                assert not ended, self.said()[-3000:]
                assert not deadline.is_set(), (self.status(), self.said()[-3000:])
                pause.wait(0.1)
        finally:
            timer.cancel()


def document(text: str) -> Any:
    """A command's ``--json``."""
    return json.loads(text)
