"""Publishing an update of Iceberg's own API as main's next snapshot, in one commit, fenced.

An update commits itself anew on whatever main shows by then, so its ``commit`` is no
compare-and-set. Its ``apply`` only makes the snapshot; that is put into the metadata on which it
was made, and the catalog takes it if that metadata is still the current one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from actors.ports import LostRace, SinkUnavailable
from sparkwriter.iceberg_java import Java, JavaFailure, LakeTable, reason
from sparkwriter.iceberg_publish import MAIN, SWAP_ATTEMPTS, remove_files


class Update(NamedTuple):
    """An update of Iceberg's API, not applied yet, and the files that were written for it."""

    java: Java
    files: tuple[str, ...] = ()


def publish_update(
    table: LakeTable,
    expected: int,
    update: Update,
    also: Callable[[Java], object] | None = None,
) -> int:
    """Make the update main's next snapshot while main shows ``expected``; gives its id.

    ``also`` changes columns or properties in that commit. Raises LostRace when main shows anything
    else, SinkUnavailable when the commit never lands. A commit whose reply was lost is found to be
    done. What was written for a snapshot that lost its race is removed. After any other failure it
    stays: the commit may still land.
    """
    failure: BaseException | None = None
    snapshot: Java | None = None
    table.in_turn(update.java)
    try:
        for _ in range(SWAP_ATTEMPTS):
            table.refresh()
            _check(table, expected, failure)
            snapshot = update.java.apply()
            table.see_current()  # on which it was made
            _check(table, expected, failure)
            head = int(snapshot.snapshotId())
            try:
                table.commit(partial(_add, snapshot=snapshot, also=also))
            except JavaFailure as error:
                failure = error
                table.refresh()
                if table.head(MAIN) == head:
                    return head
            else:
                return head
    except LostRace:
        # Main moved, so the metadata that a late commit would need is not the current one again,
        # ever. But an earlier commit, its reply lost, may be what main has moved on from.
        if snapshot is None or not table.holds(int(snapshot.snapshotId())):
            remove_files(table, _written(table, update, snapshot))
        raise
    assert failure is not None
    raise SinkUnavailable(f"the catalog takes no commit: {reason(failure)}") from failure


def _written(table: LakeTable, update: Update, snapshot: Java | None) -> Iterator[str]:
    yield from update.files
    if snapshot is not None:
        yield from table.files_of(snapshot).difference(update.files)


def _check(table: LakeTable, expected: int, failure: BaseException | None) -> None:
    if (main := table.head(MAIN)) != expected:
        raise LostRace(f"main moved from snapshot {expected} to {main} meanwhile") from failure


def _add(builder: Java, snapshot: Java, also: Callable[[Java], object] | None) -> None:
    builder.setBranchSnapshot(snapshot, MAIN)
    if also is not None:
        also(builder)
