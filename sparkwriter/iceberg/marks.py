"""The high-water marks of an Iceberg table: an entry in the summary of the snapshot they tell of.

Whoever reads main reads rows and marks of the same moment.
"""

from __future__ import annotations

from typing import NamedTuple

from sparkwriter.iceberg.java import LakeTable

HWM = "binlogd.hwm"
"""Summary entry of a snapshot: the marks of all lanes of the table, as ``Marks.text`` has them."""


class Mark(NamedTuple):
    """A stamp and the snapshot that carries it. ``above``: main's snapshots since, the newest
    first, which are others'."""

    snapshot: int
    text: str
    above: tuple[int, ...] = ()


def nearest_mark(table: LakeTable, main: int) -> Mark | None:
    """The nearest stamp in main's history: others' maintenance adds snapshots without one.

    None when the history that is left carries none.
    """
    at: int | None = main
    above: list[int] = []
    while at is not None:
        if (text := table.summary(at, HWM)) is not None:
            return Mark(at, text, tuple(above))
        above.append(at)
        at = table.parent(at)
    return None
