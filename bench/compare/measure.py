"""What a process and all it started use: processor seconds and memory, Java's apart from others'.

From /proc. One that has ended counts as itself until it is waited for, then with its parent,
which the kernel adds it to.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

LOOK_EVERY_S = 0.2
"""Often enough for a peak of memory, and 5 ms of work."""

_PAGE_MB = os.sysconf("SC_PAGE_SIZE") / 2**20
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Process:
    """A process as /proc tells it at one moment."""

    pid: int
    parent: int
    java: bool
    cpu_s: float
    """With that of children that ended and were waited for."""
    rss_mb: float
    command: bytes = b""


def processes() -> Iterator[Process]:
    """All there are; one that is waited for meanwhile is left out."""
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            # After the name, which may hold a bracket. A child that a JVM has just made has the
            # name of the thread that made it, so Java is told by what is run.
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            ended = fields[0] == "Z"  # it has its times still, and no program and no memory
            java = not ended and _program(entry) == "java"
            command = (entry / "cmdline").read_bytes()
        except OSError:
            continue
        cpu_s = sum(map(int, fields[11:15])) / _TICKS
        rss_mb = int(fields[21]) * _PAGE_MB
        yield Process(int(entry.name), int(fields[1]), java, cpu_s, rss_mb, command)


def _program(entry: Path) -> str | None:
    """The file that a process runs; None while it ends: its memory goes before its state says so.

    Raises no error for a process that is gone: what is read of it next does.
    """
    try:
        return (entry / "exe").readlink().name
    except FileNotFoundError:
        return None


def family(root: int) -> list[Process]:
    """A process with all that it, and what it started, started.

    Without what a JVM starts but which is not a program of its own yet: until then it shares the
    JVM's memory, which would count twice.
    """
    children: dict[int, list[Process]] = {}
    found: list[Process] = []
    for process in processes():
        children.setdefault(process.parent, []).append(process)
        if process.pid == root:
            found.append(process)
    for process in found:  # grows while it is walked
        found += (
            child
            for child in children.get(process.pid, ())
            if not (process.java and child.command == process.command)
        )
    return found


@dataclass(frozen=True, slots=True)
class Used:
    """Between two moments: processor seconds in all; the peak of memory of the JVMs and of all
    other processes, each summed over its processes at one look."""

    cpu_s: float
    rss_mb: float
    jvm_rss_mb: float


@dataclass
class Meter:
    """Looks at a family on a thread of its own between ``start`` and ``stop``."""

    root: int
    _peak_mb: dict[bool, float] = field(default_factory=lambda: {True: 0.0, False: 0.0})
    _began_s: float = 0.0
    _last_s: float = 0.0

    def __post_init__(self) -> None:
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Count from here on."""
        self._look()
        self._began_s = self._last_s
        self._thread.start()

    def stop(self) -> Used:
        """What was used since ``start``."""
        self._ended.set()
        self._thread.join()
        self._look()
        return Used(self._last_s - self._began_s, self._peak_mb[False], self._peak_mb[True])

    def _run(self) -> None:
        while not self._ended.wait(LOOK_EVERY_S):
            self._look()

    def _look(self) -> None:
        now = family(self.root)
        for java, peak in self._peak_mb.items():
            held = sum(process.rss_mb for process in now if process.java is java)
            self._peak_mb[java] = max(peak, held)
        # One that is waited for while they are read may be in neither sum: it is at the next look.
        self._last_s = max(self._last_s, sum(process.cpu_s for process in now))
