"""Which of a table's files are worth rewriting, and when it is time to look. Pure.

Each write adds files: of rows, and of what it deletes (keys, or places in other files). A reader
opens them all, and applies to each file of rows every deletion that may concern it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from sparkwriter.iceberg.section import CompactionSection

DEAD_SHARE = 0.3
"""A file is rewritten once this part of its rows is deleted: Iceberg's own default."""

SMALL_SHARE = 0.5
"""A file below this part of the target size is a small one."""


class FileSeen(NamedTuple):
    """A file of rows: its size, and what a reader has to leave out.

    ``deletes``: files of deletions that it applies; ``keys``: rows in those that name keys;
    ``dead``: rows that are named by their places in this file. ``partition``: whose file it is.
    """

    bytes: int
    rows: int
    deletes: int = 0
    keys: int = 0
    dead: int = 0
    partition: str = ""


class Choice(NamedTuple):
    """The files of this round, by their places; ``more``: others are due, too."""

    files: tuple[int, ...]
    more: bool


def choose(files: Sequence[FileSeen], settings: CompactionSection) -> Choice:
    """The files to be rewritten now, those that slow readers down most first."""
    halves = _half(settings.max_deletes), _half(settings.max_deleted_keys)
    burdened = [
        at
        for at, file in enumerate(files)
        if file.deletes >= halves[0] or file.keys >= halves[1] or file.dead > file.rows * DEAD_SHARE
    ]
    burdened.sort(key=lambda at: (-files[at].deletes, -files[at].keys, files[at].bytes))
    others = defaultdict[str, list[int]](list)
    for at in sorted(set(range(len(files))).difference(burdened)):
        others[files[at].partition].append(at)
    due = burdened + [at for mine in others.values() for at in _small(files, mine, settings)]
    chosen: list[int] = []
    size = 0
    for at in due:
        size += files[at].bytes
        if chosen and size > settings.round_bytes:
            break
        chosen.append(at)
    return Choice(tuple(chosen), len(chosen) < len(due))


def _small(
    files: Sequence[FileSeen], mine: Sequence[int], settings: CompactionSection
) -> Sequence[int]:
    """Small files of one partition that are put together, the smallest first; none while they are
    few.

    One that is larger than all smaller ones together waits until those have grown: so the
    number of times that a row is rewritten grows only with the logarithm of the table's size.
    """
    limit = settings.file_bytes * SMALL_SHARE
    small = sorted(
        (at for at in mine if files[at].bytes < limit),
        key=lambda at: files[at].bytes,
    )
    size, taken = 0, 0
    for number, at in enumerate(small, start=1):
        if files[at].bytes <= size:
            taken = number
        size += files[at].bytes
    return small[:taken] if taken >= settings.small_files else ()


def _half(limit: int) -> int:
    """Looked at every half of the limit, and what has a half of it goes: so none exceeds it."""
    return max(1, limit // 2)


class Growth:
    """What one target's writes have added since its files were looked at last."""

    def __init__(self) -> None:
        self._writes = 0
        self._deletes = 0
        self._keys = 0

    def add(self, writes: int, deletes: int, keys: int) -> None:
        """So many writes are published, with so many files of deleted keys, with so many keys."""
        self._writes += writes
        self._deletes += deletes
        self._keys += keys

    def is_due(self, settings: CompactionSection) -> bool:
        """Whether it is time to look."""
        return (
            self._writes >= settings.small_files
            or self._deletes >= _half(settings.max_deletes)
            or self._keys >= _half(settings.max_deleted_keys)
        )
