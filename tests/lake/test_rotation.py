"""A key that is rotated under a running daemon: refused, read again, and shown nowhere."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import Producer

from demo.broker import DevBroker
from demo.produce import create_topic
from tests.integration.rig import canal
from tests.integration.test_process import Follower, daemon
from tests.lake.check import configuration
from tests.lake.guard import StoreGuard
from tests.lake.lakes import LAKES

pytestmark = [pytest.mark.long, pytest.mark.integration, pytest.mark.timeout(300)]

OLD = ("old-key-of-the-lake", "old-secret-of-the-lake")
NEW = ("new-key-of-the-lake", "new-secret-of-the-lake")


class Running(NamedTuple):
    """A daemon on a lake whose store lets in one key alone."""

    folder: Path
    guard: StoreGuard
    broker: DevBroker
    log: Follower

    def insert(self, number: int) -> None:
        """A row into the source's table."""
        producer = Producer({"bootstrap.servers": self.broker.bootstrap})
        row = {"id": number, "name": "a", "qty": 1}
        producer.produce("shop", canal("shop.orders", "INSERT", [row]), partition=0)
        assert producer.flush(30) == 0

    def put_key(self, key: tuple[str, str]) -> None:
        """Into the files that the configuration names."""
        for name, text in zip(("id", "secret"), key, strict=True):
            (self.folder / f"{name}.new").write_text(f"{text}\n")
            (self.folder / f"{name}.new").replace(self.folder / name)


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    """Started with the old key."""
    with ExitStack() as stack:
        lake = stack.enter_context(LAKES["rest-s3"](tmp_path / "lake"))
        guard = stack.enter_context(StoreGuard(lake.servers["storage"].address, OLD[0]))
        broker = stack.enter_context(DevBroker(tmp_path / "broker"))
        create_topic(broker.bootstrap, "shop")
        catalog = dict(lake.catalog) | {
            "s3.endpoint": guard.url,
            "s3.access-key-id": "${file:id}",
            "s3.secret-access-key": "${file:secret}",
        }
        log = {"level": "debug", "format": "json", "file": str(tmp_path / "binlogd.log")}
        follower = Follower(tmp_path / "binlogd.log")
        stack.callback(follower.close)
        made = Running(tmp_path, guard, broker, follower)
        made.put_key(OLD)
        file = configuration({"lake": catalog}, tmp_path, bootstrap=broker.bootstrap, log=log)
        process = daemon("run", "--config", str(file))
        stack.callback(_end, process)
        yield made


def _end(process: subprocess.Popen[str]) -> None:
    process.terminate()
    process.communicate(timeout=120)


def test_a_rotated_key_is_read_again(running: Running) -> None:
    """The write that was refused succeeds with the new key, without a restart."""
    running.insert(1)
    running.log.wait_for("written")
    running.guard.key = NEW[0]
    running.insert(2)
    running.log.wait_for("sink_unavailable")
    running.put_key(NEW)
    running.log.wait_for("written")
    assert running.guard.let_in == {OLD[0], NEW[0]}
    events = [json.loads(line) for line in (running.folder / "binlogd.log").open()]
    refused = next(event for event in events if event["event"] == "sink_unavailable")
    assert "sink.lake.catalog.s3.access-key-id: is refused: a wrong key" in str(refused)
    assert "Traceback" not in (running.folder / "binlogd.log").read_text()
    assert shown(running.folder) == {}


def shown(folder: Path) -> dict[str, list[str]]:
    """Where a secret is: files of the daemon, command lines of this machine, what it answers."""
    binlogd = [sys.executable, "-m", "daemon.cli"]
    config = ["--config", str(folder / "config.toml")]
    places = {
        str(file): file.read_text(errors="replace")
        for file in (folder / "binlogd.log", folder / "state" / "jvm.log")
    }
    for command in (["status", "--json"], ["status"], ["check-config"]):
        done = subprocess.run(
            [*binlogd, *command, *config], capture_output=True, text=True, check=False
        )
        # A credential that ends soon is ill: it is shown all the same.
        assert done.returncode in (0, 4 if command[0] == "status" else 0), done.stderr
        places[" ".join(command)] = done.stdout + done.stderr
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            places[str(process)] = process.read_text(errors="replace")
        except OSError:  # it has ended
            continue
    found = {place: [s for s in (*OLD, *NEW) if s in text] for place, text in places.items()}
    return {place: secrets for place, secrets in found.items() if secrets}
