"""The high-water marks of an Iceberg table: an entry in the summary of the snapshot they tell of.

A reader of main sees rows and marks of the same moment.
"""

from __future__ import annotations

from typing import NamedTuple

from changes.model.errors import SinkUnavailable
from sparkwriter.iceberg.java import LakeTable
from sparkwriter.iceberg.local_tables import HWM
from sparkwriter.iceberg.publish import change_table


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


# Taking from a changelog the rows above the marks that it is to have.

DELETE_MODE = "write.delete.mode"
WHOLE_FILES = "copy-on-write"
"""A changelog's ``_partition`` stands where Iceberg has a metadata column of that name, which a
delete on the reader's side (merge-on-read) asks for and then can't read. One that rewrites
the touched files does not."""


def delete_whole_files(table: LakeTable, main: int) -> None:
    """Have deletes from the table rewrite files. Nothing else deletes from a changelog.

    Raises LostRace when main shows anything but ``main``, SinkUnavailable.
    """
    change_table(
        table,
        main,
        lambda builder: builder.setProperties({DELETE_MODE: WHOLE_FILES}),
        lambda: table.property(DELETE_MODE) == WHOLE_FILES,
    )


def stamped_removal(table: LakeTable, branch: str, main: int, stamp: str) -> int:
    """The branch's head, which carries the stamp: the removal, or a snapshot of its own behind it.

    A removal of whole files is a change of metadata alone and takes no stamp from the session.
    Raises SinkUnavailable where the branch shows anything else.
    """
    table.refresh()
    removed = _head_on(table, branch, main)
    if removed != main and table.summary(removed, HWM) == stamp:
        return removed
    table.stamp(branch, HWM, stamp)
    table.refresh()
    return _head_on(table, branch, removed)


def _head_on(table: LakeTable, branch: str, below: int) -> int:
    """The branch's head: ``below`` or one snapshot on top of it."""
    head = table.head(branch)
    if head is None or (head != below and table.parent(head) != below):
        raise SinkUnavailable(f"branch {branch} does not show exactly this reset; not published")
    return head
