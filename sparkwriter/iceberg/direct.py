"""Publishing an update of Iceberg's own API as main's next snapshot, in one commit, fenced.

An update commits itself again on whatever main shows by then, so its ``commit`` is no
compare-and-set. Its ``apply`` only makes the snapshot; that is put into the metadata on which it
was made, and the catalog takes it if that metadata is still the current one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import structlog

from changes.model.errors import LostRace, SinkUnavailable
from sparkwriter.iceberg.java import LakeTable
from sparkwriter.iceberg.publish import (
    MAIN,
    SWAP_ATTEMPTS,
    never_began,
    never_lands,
    remove_files,
    why,
)
from sparkwriter.session.java_api import Java, JavaFailure, reason

log: Any = structlog.get_logger(__name__)


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
    done. What was written for it is removed where it is sure that no commit landed nor will;
    after any other failure it stays: the commit may still land.
    """
    tries = _Tries()
    table.in_turn(update.java)
    try:
        head = _publish(table, expected, update, also, tries)
    except (LostRace, SinkUnavailable, *JavaFailure):
        # Main's history tells of an earlier commit, its reply lost, that it has moved on from.
        made = tries.made and int(tries.made[-1].snapshotId())
        if not tries.may_land and (not made or table.passed_by(made, since=expected)):
            _remove(table, update)
        raise
    _tidy(table, head, update, tries)
    return head


class PendingUpdate:
    """An update that is made main's next snapshot later, with other tables': see
    ``sparkwriter.iceberg.together.PendingCommit``."""

    def __init__(
        self,
        table: LakeTable,
        expected: int,
        update: Update,
        also: Callable[[Java], object] | None,
    ) -> None:
        self.table, self._expected, self._update, self._also = table, expected, update, also
        self._tries = _Tries()
        table.in_turn(update.java)

    @property
    def head(self) -> int:
        """The snapshot's id, whatever it is made on."""
        return int(self._tries.made[-1].snapshotId())

    def change(self) -> Callable[[Java], object]:
        """What is to be done to the metadata that the catalog has now. Raises LostRace where main
        has moved."""
        snapshot = _applied(self.table, self._expected, self._update, None)
        self._tries.made.append(snapshot)
        return partial(_add, snapshot=snapshot, also=self._also)

    def landed(self) -> None:
        """It is published."""
        _tidy(self.table, self.head, self._update, self._tries)

    def given_up(self) -> None:
        """It is not, nor ever will be."""
        _remove(self.table, self._update)


@dataclass(slots=True)
class _Tries:
    """What has become of one publish so far."""

    made: list[Java] = field(default_factory=list)
    """The snapshot that was to be committed, built again on each new metadata, with one id."""
    may_land: bool = False
    """A commit failed of which it is not sure that it did not, or will not, land."""


def _publish(
    table: LakeTable,
    expected: int,
    update: Update,
    also: Callable[[Java], object] | None,
    tries: _Tries,
) -> int:
    failure: BaseException | None = None
    for _ in range(SWAP_ATTEMPTS):
        snapshot = _applied(table, expected, update, failure)
        tries.made.append(snapshot)
        head = int(snapshot.snapshotId())
        try:
            table.commit(partial(_add, snapshot=snapshot, also=also))
        except JavaFailure as error:
            failure, before = error, tries.may_land
            # A refusal may follow a commit of ours that a proxy repeated: unless the table was seen
            # without it, it counts as landed.
            tries.may_land = before or not never_began(error)
            table.refresh()
            if table.head(MAIN) == head:
                return head
            tries.may_land = before or not never_lands(error)
            _check(table, expected, failure)
        else:
            return head
    assert failure is not None
    raise SinkUnavailable(f"the catalog takes no commit: {why(failure)}") from failure


def _applied(
    table: LakeTable, expected: int, update: Update, failure: BaseException | None
) -> Java:
    """The update's snapshot on what the catalog has now. It queries the catalog itself."""
    try:
        snapshot = update.java.apply()
    except JavaFailure:
        # On a main that has moved it may be refused for what came between.
        table.see_current()
        _check(table, expected, failure)
        raise
    table.see_current()
    _check(table, expected, failure)
    return snapshot


def _tidy(table: LakeTable, head: int, update: Update, tries: _Tries) -> None:
    """Delete what Iceberg wrote on the way to the snapshot that was published: manifests that it
    merged with others at once, lists of earlier tries. A failure is logged."""
    # The metadata was read before the commit, unless its reply was lost.
    published = table.metadata.snapshot(head) or tries.made[-1]
    merged = published.summary().get("manifests-replaced") not in (None, "0")
    if not merged and len(tries.made) == 1:
        return
    try:
        table.clean_up_behind(update.java, published)
    except JavaFailure as error:
        log.warning("attempt_left_behind", reason=reason(error))
    lists = {str(snapshot.manifestListLocation()) for snapshot in tries.made}
    remove_files(table, lists - {str(published.manifestListLocation())})


def _remove(table: LakeTable, update: Update) -> None:
    """Delete what was written for an update that is no snapshot of the table, nor becomes one."""
    remove_files(table, update.files)
    try:
        table.clean_up(update.java)
    except JavaFailure as error:
        log.warning("attempt_left_behind", reason=reason(error))


def _check(table: LakeTable, expected: int, failure: BaseException | None) -> None:
    if (main := table.head(MAIN)) != expected:
        raise LostRace(f"main moved from snapshot {expected} to {main} meanwhile") from failure


def _add(builder: Java, snapshot: Java, also: Callable[[Java], object] | None) -> None:
    builder.setBranchSnapshot(snapshot, MAIN)
    if also is not None:
        also(builder)
