"""How much the state directory holds, and the one bound of it (``daemon.state_max_bytes``).

At the bound, what grows by choice is refused as by a full disk: spills and dead letters. Nothing
else ever is: offset files, jobs, schemas, pauses and logs are small or have bounds of their own.
"""

from __future__ import annotations

import errno
import os
import shutil
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TypedDict

SPILLS, DEAD_LETTERS = "spills", "dead_letters"
"""The parts that are refused at the bound."""

OF_FOLDERS = {"schemas", "jobs", "broker", "connect", "staging"}
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

    def __init__(self, folder: Path, most: int | None = None) -> None:
        """``most``: bytes; None: as much as the disk takes. Measures nothing yet."""
        self._folder, self._most = folder, most
        self._lock = threading.Lock()
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

    def require(self) -> None:
        """Raise OSError where nothing more may be taken, which says so."""
        with self._lock:
            full = self._most is not None and self._parts.total() >= self._most
        if full:
            why = f"state_dir has come to its bound of {self._most:,} bytes (state_max_bytes)"
            raise OSError(errno.EDQUOT, why)

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
    have fewer than they seem to. Links are not followed: they lead to another disk."""
    for entry in os.scandir(folder):
        for size in _below(entry):
            yield entry.name, size


def _below(entry: os.DirEntry[str]) -> Iterator[int]:
    try:
        if entry.is_dir(follow_symlinks=False):
            for each in os.scandir(entry):
                yield from _below(each)
        elif not entry.is_symlink():
            yield entry.stat(follow_symlinks=False).st_blocks * 512
    except (FileNotFoundError, PermissionError):
        return  # removed meanwhile, or not binlogd's, as a mount's lost+found
