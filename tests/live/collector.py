"""binlogd's own collector as a reader: a seed's connector is the daemon's, and so is its worker."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from collector.connect.worker import NAME
from daemon.state import control
from tests.live.connect import RENAMED_AWAY
from tests.live.jars import bring_collector
from tests.live.program import LiveError
from tests.live.sources import Source

_UP_WITHIN_S = 180.0
LASTING = 3
"""A task that has failed so often was started again by its collector, and does not come to run."""


class Collector:
    """A ``Reader``. It has no program of its own: a round's daemon starts and ends it."""

    format = "debezium-json"
    left_out: Mapping[str, str] = {}
    unread: Mapping[str, str] = RENAMED_AWAY
    images: Sequence[str] = ("FULL",)
    can_be_killed = True

    def __init__(self, folder: Path, bootstrap: str) -> None:
        """Raises JarsError."""
        bring_collector()
        self._states: dict[str, Path] = {}

    def section(self, name: str) -> Sequence[str]:
        """Further lines of a seed's ``[collector.NAME]``."""
        return ()

    def hit(self) -> Collection[str]:
        """The seeds that nobody reads behind a kill until another goes on: all."""
        return self._states

    def start(self) -> None:
        """The daemon does."""

    def kill(self) -> None:
        """kill -9 of the daemon's worker, which reads for all seeds; the daemon replaces it."""
        for state in dict.fromkeys(self._states.values()):
            os.kill(_worker(state), signal.SIGKILL)

    def add(
        self,
        name: str,
        topic: str,
        seed: int,
        source: Source,
        folder: Path,
        more: Mapping[str, str] = {},
    ) -> None:
        self._states[name] = folder / "state"

    def remove(self, name: str) -> None:
        del self._states[name]

    def failure(self, name: str) -> str:
        for found in _status(self._states[name]).get("collectors", ()):
            if found["collector"] == name and found["state"] in ("failed", "lost", "unfit"):
                is_final = found["state"] == "lost" or found["restarts"] >= LASTING
                return f"{found['state']}: {found['reason']}" if is_final else ""
        return ""

    def start_again(self, name: str) -> None:
        """The collector does, after growing waits."""


def _status(state: Path) -> Mapping[str, Any]:
    """Nothing where no daemon answers."""
    try:
        found: Mapping[str, Any] = control.ask(state, {"ask": "status"})
    except control.ControlError:
        return {}
    return found


def _worker(state: Path) -> int:
    """The process, once there is one. Raises LiveError."""
    deadline, pause = time.monotonic() + _UP_WITHIN_S, threading.Event()
    while time.monotonic() < deadline:
        for found in _status(state).get("programs", ()):
            if found["program"] == NAME and found["pid"] is not None:
                return int(found["pid"])
        pause.wait(0.2)
    raise LiveError(f"binlogd has no worker after {_UP_WITHIN_S:.0f} s")
