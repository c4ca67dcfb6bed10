"""A log, the pipeline that reads it, gates of it, and ``binlogd gate run``."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from typer.testing import CliRunner, Result

from daemon.cli.__main__ import app
from daemon.state.gate_store import GateStore
from demo.broker import DevBroker
from offsets.gate_record import GateRecord
from tests.daemon.cli.counts.debezium_log import MINUTE, DebeziumLog
from tests.daemon.cli.counts.test_broker import TARGET, World
from tests.left import started


def at(minute: int) -> str:
    """A minute of the range, as gates spell it."""
    moment = datetime.fromtimestamp((MINUTE + minute) * 60, UTC)
    return moment.isoformat().replace("+00:00", "Z")


class GateWorld(World):
    """Its daemon is played by ``record``, or run."""

    def __init__(self, folder: Path, broker: DevBroker) -> None:
        super().__init__(folder, broker)
        self.marks = folder / "marks"
        self.marks.mkdir()
        self.sent = 0
        self.log = DebeziumLog()

    def gate(self, name: str = "g", **keys: Any) -> None:
        """Configure a gate of one minute each, from the range's begin."""
        all_ = {"tables": [TARGET], "every": "1m", "from": at(0), **keys}
        lines = (f"{key} = {json.dumps(value)}" for key, value in all_.items())
        with self.config.open("a") as file:
            file.write("\n".join((f"\n[gates.{name}]", *lines, "")))

    def grow(self) -> int:
        """Append what came into the log since; returns where it ends."""
        ((_, records),) = self.log.source.records.items()
        if not self.sent:
            self.make()
        producer = Producer({"bootstrap.servers": self.broker})
        self.send(producer, records[self.sent :])
        assert producer.flush(20) == 0
        self.sent = len(records)
        return self.sent

    def written(self, minutes: int) -> None:
        """A transaction in each minute of the log, up to this one, and all of it is written."""
        for minute in range(minutes):
            self.log.at(minute, 5).transaction(f"t{minute}", "I")
        self.record(self.grow())

    def once(self, *words: str) -> tuple[int, str]:
        """Its status and what it says."""
        done = subprocess.run(
            [*RUN, *words, "--once", "-c", str(self.config)],
            capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        return done.returncode, done.stderr

    def start(self) -> Running:
        """A process that goes on."""
        return Running(self.config)

    def command(self, *words: str) -> Result:
        return CliRunner().invoke(app, ("gate", *words, "-c", str(self.config)))

    def recorded(self, name: str = "g") -> GateRecord:
        found = GateStore(self.state).record(name)
        assert found is not None
        return found

    def closed(self, name: str = "g") -> list[tuple[str, int]]:
        """The marks that are there, each with its version."""
        found = sorted(self.marks.glob(f"{name}/*/_SUCCESS"))
        return [(path.parent.name, json.loads(path.read_text())["version"]) for path in found]


RUN = (sys.executable, "-m", "daemon.cli", "gate", "run")


class Running:
    """``binlogd gate run``, and what it says."""

    def __init__(self, config: Path) -> None:
        self.process = started(subprocess.Popen(
            [*RUN, "-c", str(config)], stderr=subprocess.PIPE, text=True,
        ))  # fmt: skip
        self.lines: list[str] = []
        self._news = threading.Condition()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            with self._news:
                self.lines.append(line)
                self._news.notify_all()

    def says(self, text: str, within_s: float = 60.0) -> None:
        """Wait for a line."""
        with self._news:
            heard = self._news.wait_for(lambda: any(text in line for line in self.lines), within_s)
        assert heard, self.lines

    def end(self) -> int:
        """By SIGTERM; its status."""
        self.process.terminate()
        status = self.process.wait(20)
        self._thread.join(20)
        return status

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(20)
        self._thread.join(20)
