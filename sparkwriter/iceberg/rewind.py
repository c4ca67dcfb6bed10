"""Taking from a changelog the rows above the marks that it is to have."""

from __future__ import annotations

from actors.contract.ports import SinkUnavailable
from sparkwriter.iceberg.java import LakeTable
from sparkwriter.iceberg.marks import HWM
from sparkwriter.iceberg.publish import change_table

DELETE_MODE = "write.delete.mode"
WHOLE_FILES = "copy-on-write"
"""A changelog's ``_partition`` stands where Iceberg has a metadata column of that name, which a
delete on the reader's side (merge-on-read) asks for and then can't read. One that writes the
touched files anew does not."""


def delete_whole_files(table: LakeTable, main: int) -> None:
    """Have deletes from the table write files anew. Nothing else deletes from a changelog.

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
