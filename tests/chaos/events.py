"""A daemon's log as it is written: a line read is an event, so nobody sleeps."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections import Counter
from pathlib import Path


class EventLog:
    """Counts the events of a log file, on a thread of its own; any thread may wait."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        self._counts: Counter[str] = Counter()
        self._last: dict[str, float] = {}
        self._news = threading.Condition()
        self._tail = subprocess.Popen(
            ["tail", "-n", "+1", "-F", str(path)],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def count(self, event: str) -> int:
        """How many there have been."""
        with self._news:
            return self._counts[event]

    def wait_for(self, event: str, times: int, within_s: float) -> float:
        """Wait until so many more have come, as ``reach``."""
        return self.reach(event, self.count(event) + times, within_s)

    def reach(self, event: str, count: int, within_s: float) -> float:
        """Wait until there have been so many; when the last one was, by the monotonic clock.

        Raises TimeoutError.
        """
        with self._news:
            if not self._news.wait_for(lambda: self._counts[event] >= count, within_s):
                raise TimeoutError(f"no {event} in {within_s:.0f} s")
            return self._last[event]

    def close(self) -> None:
        """Follow no more."""
        self._tail.kill()
        self._tail.wait()
        self._thread.join()

    def _read(self) -> None:
        assert self._tail.stdout is not None
        for line in self._tail.stdout:
            try:
                event = json.loads(line)["event"]
            except ValueError:  # a process that was killed in the middle of a line
                continue
            with self._news:
                self._counts[event] += 1
                self._last[event] = time.monotonic()
                self._news.notify_all()
