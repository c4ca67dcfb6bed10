"""Moving a table's refs by compare-and-set: what makes a write atomic and fenced.

A write's snapshot is made on a branch of its own. Publishing it is one commit that points main
at the branch's head and takes the branch away, and it is committed against metadata in which
main was seen to stand where the write began. The catalog swaps its pointer only if that metadata
is still the current one, so nothing can come between the look and the swap: the loser reads
again, and finds main moved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import structlog

from changes.model.errors import LostRace, SinkUnavailable
from sparkwriter.iceberg.java import LakeTable
from sparkwriter.iceberg.refusals import check_metastore
from sparkwriter.session.java_api import Java, JavaFailure, java_classes, reason

# Which failed commits have surely not landed: only then may what was written for them go.

_REFUSED = ("org.apache.iceberg.exceptions.CommitFailedException",)
"""The catalog has compared and said no: Iceberg removes the files after it, too."""

_NOT_BEGUN = ("Failed to write json to file", "Failed to create file")
"""Iceberg's words where the metadata file could not be written that the pointer would name."""

_ROLLED_BACK = ("[SQLITE_FULL]", "[SQLITE_BUSY]", "[SQLITE_READONLY", "[SQLITE_CANTOPEN")
"""SQLite's words where it took nothing: it runs in the same process, no reply can be lost."""

_NOT_IN_ORDER = (
    "Expected sorted snapshot log entries",
    "Expected sorted previous metadata log entries",
    "Invalid update timestamp",
)
"""Iceberg's words where its clock stands before the table's last commit, by more than a minute. It
says so while it makes the metadata, before the catalog gets it."""


def why(error: BaseException) -> str:
    """Why a commit failed, in one line."""
    if _is_clock_behind(error):
        return (
            "this machine's clock stands before the table's last commit, which some clock dated"
            f" ahead; writes go on once it has passed that ({reason(error)})"
        )
    return reason(error)


def never_lands(error: BaseException) -> bool:
    """Whether a commit that failed so has not changed the catalog, nor will.

    True only once the table has been looked at since, and does not show it: a client, a driver or a
    gateway that asks again by itself is refused because of its own commit.
    """
    if _is_unknown(error):
        return False
    return java_classes(error)[0] in _REFUSED or never_began(error)


def never_began(error: BaseException) -> bool:
    """The same without a look: the catalog can't have taken anything."""
    if _is_unknown(error):
        return False
    text = str(error)
    return any(words in text for words in (*_NOT_BEGUN, *_ROLLED_BACK)) or _is_clock_behind(error)


def _is_clock_behind(error: BaseException) -> bool:
    """Whether Iceberg made no metadata here. A catalog's server may say the same of its own clock:
    of an answer over a network nothing is concluded."""
    made_here = java_classes(error)[:1] == ("java.lang.IllegalArgumentException",)
    return made_here and any(words in str(error) for words in _NOT_IN_ORDER)


def _is_unknown(error: BaseException) -> bool:
    """Whether there was no reply, or one that does not know."""
    classes = java_classes(error)
    return not classes or any(name.endswith(".CommitStateUnknownException") for name in classes)


MAIN = "main"
SWAP_ATTEMPTS = 10
"""A swap fails when any commit to the table came between, also one to another branch, and each
such failure means that another commit succeeded. Fewer: a busy table refuses good writes. More: a
catalog that can't take commits is noticed later."""

log: Any = structlog.get_logger(__name__)


class NotLanded(SinkUnavailable):
    """No commit landed, and surely none will: what was written for it may go."""


class Overtaken(LostRace):
    """Main moved, and each of our commits was surely refused: as ``NotLanded``."""


def create_branch(table: LakeTable, branch: str, at: int) -> None:
    """Make the branch at snapshot ``at``, which main must show. Raises LostRace when not."""

    def change(builder: Java) -> None:
        builder.setRef(branch, table.branch_at(at))

    _swap(table, change, expected=at, done=lambda: table.head(branch) == at)


def publish_branch(
    table: LakeTable,
    branch: str,
    expected: int,
    head: int,
    also: Callable[[Java], object] | None = None,
) -> None:
    """Point main from ``expected`` to ``head`` and remove the branch, in one commit.

    ``also`` changes columns or properties in that commit. Raises LostRace when main shows anything
    else, SinkUnavailable when the commit never lands. A commit whose reply was lost is found to be
    done.
    """

    def change(builder: Java) -> None:
        builder.setRef(MAIN, table.moved(MAIN, head))
        builder.removeRef(branch)
        if also is not None:
            also(builder)

    _swap(table, change, expected=expected, done=lambda: table.head(MAIN) == head)


def publish_attempt(
    table: LakeTable,
    attempt: LakeTable,
    expected: int,
    also: Callable[[Java], object] | None = None,
) -> int:
    """Add what was committed to ``attempt`` to the table and point main at the last of it.

    Gives that snapshot's id. Raises as ``publish_branch``.
    """
    head = int(attempt.made_since(expected)[-1].snapshotId())
    change = partial(add_attempt, table, attempt, expected, also)
    try:
        _swap(table, change, expected=expected, done=lambda: table.head(MAIN) == head)
    except (Overtaken, NotLanded):
        # After any other failure it may still land, or have landed.
        if table.passed_by(head, since=expected):
            discard(table, attempt, expected)
        raise
    return head


def add_attempt(
    table: LakeTable,
    attempt: LakeTable,
    since: int,
    also: Callable[[Java], object] | None,
    builder: Java,
) -> None:
    """Add what was committed to ``attempt`` and point main at the last of it, in metadata."""
    made = attempt.made_since(since)
    for snapshot in made:
        builder.addSnapshot(snapshot)
    builder.setRef(MAIN, table.moved(MAIN, int(made[-1].snapshotId())))
    if also is not None:
        also(builder)


def discard(table: LakeTable, attempt: LakeTable, since: int) -> None:
    """Delete the files of an attempt that will never be published. A failure is logged."""

    def paths() -> Iterator[str]:
        for snapshot in attempt.made_since(since):
            yield from table.files_of(snapshot)

    remove_files(table, paths())


def remove_files(table: LakeTable, paths: Iterable[str]) -> None:
    """Delete files that no snapshot names nor will. A failure is logged, also one to list them:
    what made the write fail must not be hidden behind it.
    """
    try:
        io = table.operations.io()
        for path in paths:
            io.deleteFile(path)
    except JavaFailure as error:
        log.warning("attempt_left_behind", reason=reason(error))


def change_table(
    table: LakeTable, expected: int, change: Callable[[Java], object], done: Callable[[], bool]
) -> None:
    """Change columns or properties in one commit, while main shows ``expected``.

    ``done`` tells from the table's metadata that it is so already. Raises as ``publish_branch``.
    """

    def fenced(builder: Java) -> None:
        change(builder)
        builder.setRef(MAIN, table.aged(MAIN))

    _swap(table, fenced, expected=expected, done=done)


def change_refs(
    table: LakeTable, change: Callable[[Java], object], done: Callable[[], bool]
) -> None:
    """Change refs beside main in one commit, wherever main is. ``done`` as in ``change_table``.

    Raises SinkUnavailable, and what ``change`` and ``done`` raise.
    """
    _swap(table, change, expected=None, done=done)


def restamp(table: LakeTable, branch: str, main: int, stamp: tuple[str, str]) -> int:
    """Put a snapshot without changes on top of ``main``, with one entry in its summary.

    Gives its id. Raises as ``publish_branch``; the branch is gone either way.
    """
    try:
        create_branch(table, branch, main)
        table.stamp(branch, *stamp)
        table.refresh()
        head = table.head(branch)
        if head is None or table.parent(head) != main:
            raise SinkUnavailable(f"branch {branch} does not show exactly the new mark")
        publish_branch(table, branch, main, head)
    except BaseException:
        drop_branch(table, branch)
        raise
    table.refresh()
    return head


def drop_branch(table: LakeTable, branch: str) -> None:
    """Remove the branch if it is there.

    A failure is logged, not raised: the branch holds nothing that a reader sees, and what made
    the write fail must not be hidden behind it.
    """
    failure: BaseException | None = None
    for _ in range(SWAP_ATTEMPTS):
        try:
            table.refresh()
            if table.head(branch) is None:
                return
            table.commit(lambda builder: builder.removeRef(branch))
            return
        except JavaFailure as error:
            failure = error
    if failure is not None:
        log.warning("branch_left_behind", branch=branch, reason=reason(failure))


def _swap(
    table: LakeTable,
    change: Callable[[Java], object],
    *,
    expected: int | None,
    done: Callable[[], bool],
) -> None:
    """Commit a change of refs against metadata in which main shows ``expected``; None: anything.

    Raises TargetRefused where the catalog never takes such a change.
    A failed commit is looked at again, not believed: its reply may have been lost. The last one,
    too: a client that asks a catalog again by itself hears a conflict with its own commit.
    """
    failure: BaseException | None = None
    may_land = False
    for attempt in range(SWAP_ATTEMPTS + 1):
        table.refresh()
        if done():
            return
        if attempt == SWAP_ATTEMPTS:
            break
        if expected is not None and (main := table.head(MAIN)) != expected:
            # Somebody's compaction, or another member's lanes: the next attempt reads the marks
            # again, and those decide whether this batch is still due.
            lost = LostRace if may_land else Overtaken
            raise lost(f"main moved from snapshot {expected} to {main} meanwhile") from failure
        try:
            table.commit(change)
        except JavaFailure as error:
            check_metastore(error)
            failure = error
            may_land = may_land or not never_lands(error)
        else:
            return
    assert failure is not None
    kind = SinkUnavailable if may_land else NotLanded
    raise kind(f"the catalog takes no commit: {why(failure)}") from failure
