"""A daemon whose wall clock jumps while it runs: an hour ahead, then two hours back."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from daemon.state import control
from tests import needs
from tests.integration.rig import Rig, canal
from tests.integration.test_process import CHECKOUT, Follower, daemon, ended
from tests.integration.test_sqlite_sink import read, write_config

pytestmark = [pytest.mark.integration, pytest.mark.long, pytest.mark.timeout(300)]

HOUR_S = 3600
WATCHDOG_S = 4.0
SHIM = CHECKOUT / "tests/integration/shifted_clock.c"


class Clock:
    """The wall clock that a process and its children see. Their monotonic one is the machine's."""

    def __init__(self, folder: Path) -> None:
        self._library, self._file = folder / "shifted_clock.so", folder / "clock"
        subprocess.run(
            [needs.tool("cc"), "-shared", "-fPIC", "-O1", "-o", self._library, SHIM, "-ldl"],
            check=True,
        )
        self._file.write_bytes(struct.pack("q", 0))

    def jump(self, seconds: int) -> None:
        """So far from the true time, at once."""
        with self._file.open("r+b") as file:
            file.write(struct.pack("q", seconds * 10**9))

    @property
    def environment(self) -> Mapping[str, str]:
        """Of the process."""
        return {"LD_PRELOAD": str(self._library), "SHIFTED_CLOCK": str(self._file)}


class Watchdog:
    """What systemd would hear."""

    def __init__(self, folder: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._place = folder / "notify"
        self._socket.bind(str(self._place))

    def next_ping(self) -> None:
        """Wait for the next one from now on, as long as systemd would."""
        self._socket.setblocking(False)
        try:
            while self._socket.recv(4096):
                pass
        except BlockingIOError:
            self._socket.settimeout(WATCHDOG_S)
        while "WATCHDOG=1" not in self._socket.recv(4096).decode():
            pass

    def close(self) -> None:
        """Nobody listens any more."""
        self._socket.close()

    @property
    def environment(self) -> Mapping[str, str]:
        """As systemd sets it."""
        return {"NOTIFY_SOCKET": str(self._place), "WATCHDOG_USEC": str(int(WATCHDOG_S * 1e6))}


@pytest.fixture
def watchdog(tmp_path: Path) -> Iterator[Watchdog]:
    made = Watchdog(tmp_path)
    yield made
    made.close()


class Running:
    """A daemon under such a clock, and what a person sees of it."""

    def __init__(self, rig: Rig, config: Path, clock: Clock, watchdog: Watchdog) -> None:
        self.rig, self.rows = rig, 0
        self.follower = Follower(rig.log_file)
        environment = {**os.environ, **clock.environment, **watchdog.environment}
        self.process = daemon("run", "--config", str(config), env=environment)
        self.follower.wait_for("assigned")

    def insert(self) -> None:
        """One row."""
        self.rows += 1
        row = {"id": self.rows, "name": "x", "qty": self.rows}
        self.rig.produce(canal(f"{self.rig.db}.t", "INSERT", [row]))

    def status(self) -> Any:
        """The whole document."""
        return control.ask(self.rig.folder / "state", {"ask": "status"})

    def settled(self) -> None:
        """Wait until all is written and its position is stored."""
        end = time.monotonic() + 60
        while (found := self.status()["pipelines"][0])["partitions"][0]["frontier"] != self.rows:
            assert time.monotonic() < end, found
            threading.Event().wait(0.1)
        assert found["lag_messages"] == 0

    def last_error(self) -> str:
        """Of its target, once a processor that was busy has answered."""
        end = time.monotonic() + 60
        while (error := self.status()["pipelines"][0]["targets"][0]["last_error"]) is None:
            assert time.monotonic() < end
            threading.Event().wait(0.1)
        return str(error["reason"])

    def end(self) -> None:
        """In good order."""
        self.process.terminate()
        assert ended(self.process) == (0, "")
        self.follower.close()


def test_the_clock_jumps_ahead_and_back(rig: Rig, tmp_path: Path, watchdog: Watchdog) -> None:
    """An hour ahead, two back, and to the true time: rows, positions and the watchdog go on."""
    clock = Clock(tmp_path)
    running = Running(rig, write_config(rig), clock, watchdog)
    for jump in (0, HOUR_S, -HOUR_S, 0):
        clock.jump(jump)
        for _ in range(3):
            running.insert()
            running.follower.wait_for("written", times=2, within_s=30)
        running.settled()
        watchdog.next_ping()
        shown = running.status()
        assert abs(shown["time_ms"] / 1000 - time.time() - jump) < 10
        assert (shown["healthy"], shown["ready"]) == (True, True)
    running.end()
    assert read(rig, "t") == [(number, "x", number) for number in range(1, 13)]


def test_iceberg_waits_for_a_clock_that_jumped_back(
    rig: Rig, tmp_path: Path, watchdog: Watchdog, warehouse: Path
) -> None:
    """A table takes no commit from before its last one: the target says so and goes on then."""
    clock = Clock(tmp_path)
    running = Running(rig, rig.write_config(), clock, watchdog)
    for jump in (0, HOUR_S):
        clock.jump(jump)
        running.insert()
        running.follower.wait_for("written", within_s=60)
    clock.jump(0)
    running.insert()
    running.follower.wait_for("sink_unavailable", within_s=60)
    watchdog.next_ping()
    assert "this machine's clock stands before the table's last" in running.last_error()
    assert running.status()["healthy"]
    clock.jump(HOUR_S + 60)
    running.follower.wait_for("written", within_s=90)
    running.settled()
    running.end()
    assert rig.rows("t") == [(number, "x", number) for number in range(1, 4)]
    # Of all the attempts nothing is left.
    table = f"lake.`{rig.db}`.t"
    named = rig.spark.sql(f"SELECT file_path FROM {table}.all_data_files").count()
    lists = rig.spark.sql(f"SELECT manifest_list FROM {table}.snapshots").count()
    (folder,) = warehouse.glob(f"**/{rig.db}/t")
    assert len(list(folder.glob("data/*.parquet"))) == named
    assert len(list(folder.glob("metadata/snap-*.avro"))) == lists
