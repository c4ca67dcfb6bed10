"""What a daemon, its decoding processes and its JVM hold, looked at every few seconds."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.chaos.flat import Sample

EVERY_S = 2.0
GROWN_UP_S = 120.0
"""A JVM's heap grows for a minute or two whatever happens; younger ones are not looked at."""

_PAGE_MB = os.sysconf("SC_PAGE_SIZE") / 2**20
_TICKS = os.sysconf("SC_CLK_TCK")


class Sampler:
    """Looks on a thread of its own, from ``start`` to ``stop``; ``pid`` says whose processes."""

    def __init__(self, pid: Callable[[], int]) -> None:
        self._pid = pid
        self._ended = threading.Event()
        self._began = time.monotonic()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.samples: list[Sample] = []

    def start(self) -> None:
        """Begin: time counts from here."""
        self._began = time.monotonic()
        self._thread.start()

    def stop(self) -> list[Sample]:
        """All that was seen."""
        self._ended.set()
        self._thread.join()
        return self.samples

    def _run(self) -> None:
        while not self._ended.wait(EVERY_S):
            at = time.monotonic() - self._began
            sums: dict[str, Counter[str]] = {}
            for kind, figures in look(self._pid()):
                sums.setdefault(kind, Counter()).update(figures)
            self.samples += [Sample(at, kind, dict(found)) for kind, found in sums.items()]


def look(pid: int) -> Iterator[tuple[str, dict[str, float]]]:
    """Of each process of the daemon's: its kind, and what it holds. What ends meanwhile is none."""
    for found, kind in _family(pid):
        place = Path(f"/proc/{found}")
        try:
            rss = int((place / "statm").read_text().split()[1]) * _PAGE_MB
            files = len(list((place / "fd").iterdir()))
            threads = len(list((place / "task").iterdir()))
        except OSError:
            continue
        yield kind, {"rss_mb": rss, "files": files, "threads": threads}


def _family(pid: int) -> Iterator[tuple[int, str]]:
    yield pid, "daemon"
    uptime = float(Path("/proc/uptime").read_text().split()[0])
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            name, _, rest = (entry / "stat").read_text().rpartition(")")
        except OSError:
            continue
        fields = rest.split()
        if int(fields[1]) != pid:
            continue
        java = name.endswith("(java")
        if not java:
            yield int(entry.name), "decoding"
        elif uptime - int(fields[19]) / _TICKS > GROWN_UP_S:
            yield int(entry.name), "jvm"
