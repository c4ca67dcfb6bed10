"""How much the state directory holds, and the one bound of it (``daemon.state_max_bytes``).

At the bound, what grows by choice is refused as by a full disk: spills and dead letters. Nothing
else ever is: offset files, jobs, schemas, pauses and logs are small or have bounds of their own.
"""

from __future__ import annotations

import errno
import math
import os
import shutil
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TypedDict

SPILLS, DEAD_LETTERS = "spills", "dead_letters"
"""The parts that are refused at the bound."""

AGAIN_S = 2.0
"""A refusal measures again what was measured longer ago. Less: a thousand targets that retry read
the directory all the time. More: who has made room is refused once more."""

OF_FOLDERS = {"schemas", "jobs", "broker", "connect", "staging", "gates"}
"""Folders below the state directory that are shown under their own names."""


class StateFigures(TypedDict):
    """What the directory holds, in bytes on the disk, by part; and what it may hold.

    ``bounded``: the limit is the configuration's. Else it is the room that the disk has.
    """

    parts: dict[str, int]
    limit_bytes: int
    bounded: bool


class StateRoom:
    """Measures the directory, and refuses what grows beyond its bound. Any thread.

    What is appended or removed between two measurements is counted as it is.
    """

    def __init__(self, folder: Path, most: int | None = None, again_s: float = AGAIN_S) -> None:
        """``most``: bytes; None: as much as the disk takes. ``again_s``: for so long no refusal
        measures again. Measures nothing yet."""
        self._folder, self._most, self._again_s = folder, most, again_s
        self._lock = threading.Lock()
        self._measured_s = -math.inf
        self._parts: Counter[str] = Counter()
        self._disk: int | None = None

    def measure(self) -> None:
        """Look at every file. Raises OSError."""
        parts: Counter[str] = Counter()
        for name, size in _files(self._folder):
            parts[part_of(name)] += size
        free = shutil.disk_usage(self._folder).free
        with self._lock:
            self._parts, self._disk = parts, parts.total() + free
            self._measured_s = time.monotonic()

    def require(self) -> None:
        """Raise OSError where nothing more may be taken, which says so. Nothing is refused by an
        old figure: who has made room goes on at once."""
        full, age_s = self._full()
        if full and age_s >= self._again_s:
            self.measure()
            full, _ = self._full()
        if full:
            why = f"state_dir has come to its bound of {self._most:,} bytes (state_max_bytes)"
            raise OSError(errno.EDQUOT, why)

    def _full(self) -> tuple[bool, float]:
        """Whether it is, and how old the measurement is, in seconds."""
        with self._lock:
            full = self._most is not None and self._parts.total() >= self._most
            return full, time.monotonic() - self._measured_s

    def note(self, part: str, size: int) -> None:
        """So many bytes were appended; negative: removed."""
        with self._lock:
            self._parts[part] += size

    def figures(self) -> StateFigures | None:
        """As of now; None before it is measured."""
        with self._lock:
            parts = {part: size for part, size in sorted(self._parts.items()) if size > 0}
            most, disk = self._most, self._disk
        if disk is None:
            return None
        if most is not None and most <= disk:
            return {"parts": parts, "limit_bytes": most, "bounded": True}
        return {"parts": parts, "limit_bytes": disk, "bounded": False}


def part_of(name: str) -> str:
    """Which part an entry of the directory belongs to, by its name."""
    if name in OF_FOLDERS:
        return name
    if name.endswith(".spill"):
        return SPILLS
    if ".dead-letters." in name:
        return DEAD_LETTERS
    return "logs" if name.startswith("jvm") else "other"


def _files(folder: Path) -> Iterator[tuple[str, int]]:
    """Each file with the name of the entry that it is in, and its bytes on the disk: sparse files
    have fewer than they seem to, a file of several names has them once. Links are not followed, nor
    what is mounted in the folder: both lead to another disk."""
    disk, seen = os.stat(folder).st_dev, set[int]()
    left = [(entry.name, entry) for entry in os.scandir(folder)]
    while left:
        name, entry = left.pop()
        try:
            found = entry.stat(follow_symlinks=False)
            if entry.is_dir(follow_symlinks=False):
                if found.st_dev == disk:
                    left += [(name, each) for each in os.scandir(entry)]
            elif not entry.is_symlink() and found.st_ino not in seen:
                if found.st_nlink > 1:
                    seen.add(found.st_ino)
                yield name, found.st_blocks * 512
        except (FileNotFoundError, PermissionError):
            continue  # removed meanwhile, or not binlogd's, as a mount's lost+found
