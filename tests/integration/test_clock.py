"""A daemon whose wall clock jumps while it runs: an hour ahead, then two hours back."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from daemon.observe import control
from tests import needs
from tests.integration.rig import Rig, canal
from tests.integration.test_process import CHECKOUT, Follower, daemon, ended

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


def status(rig: Rig) -> Any:
    """The pipeline's, from the running daemon."""
    (found,) = control.ask(rig.folder / "state", {"ask": "status"})["pipelines"]
    return found


def test_the_clock_jumps_while_it_runs(rig: Rig, tmp_path: Path, watchdog: Watchdog) -> None:
    """Rows, commits, positions and the watchdog go on; each row is there once."""
    clock = Clock(tmp_path)
    config = rig.write_config()
    follower = Follower(rig.log_file)
    environment = {**os.environ, **clock.environment, **watchdog.environment}
    process = daemon("run", "--config", str(config), env=environment)
    follower.wait_for("assigned")
    rows = 0
    for number, jump in enumerate((0, HOUR_S, -HOUR_S, 0)):
        clock.jump(jump)
        for _ in range(3):
            rows += 1
            row = {"id": rows, "name": str(jump), "qty": number}
            rig.produce(canal(f"{rig.db}.t", "INSERT", [row]))
            follower.wait_for("written", within_s=30)
        watchdog.next_ping()
        shown = control.ask(rig.folder / "state", {"ask": "status"})
        print(jump, shown["time_ms"], shown["healthy"], shown["silent"], shown["pipelines"])
    process.terminate()
    code, said = ended(process)
    follower.close()
    assert (code, said) == (0, "")
