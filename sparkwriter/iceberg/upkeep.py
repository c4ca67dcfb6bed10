"""Keeping tables small: dead attempts' branches go, old snapshots and their files go.

All of it runs on the thread that writes the table, between two of its writes. Nothing here may
fail a write or an opening: what goes wrong is logged and tried again later.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import structlog

from changes.model.errors import SinkUnavailable
from changes.model.model import TargetName
from offsets.fence import Fenced
from sparkwriter.iceberg.java import LakeTable
from sparkwriter.iceberg.local_tables import HWM
from sparkwriter.iceberg.marks import nearest_mark
from sparkwriter.iceberg.ownership import (
    BRANCH_PREFIX,
    ForeignSnapshots,
    Owner,
    attempt_of,
    is_dead,
)
from sparkwriter.iceberg.publish import MAIN, restamp
from sparkwriter.iceberg.section import MaintenanceSection
from sparkwriter.session.java_api import JavaFailure, reason

log: Any = structlog.get_logger(__name__)


class Upkeep:
    """The upkeep of one sink's tables, shared by its writers; each call is for one table.

    No two calls for one table come at the same time: a target has one write at a time. ``now``
    gives seconds since the epoch, as the catalog's timestamps count them.
    """

    def __init__(
        self, owner: Owner, settings: MaintenanceSection, now: Callable[[], float] = time.time
    ) -> None:
        self.owner = owner
        self.settings = settings
        self.foreign = ForeignSnapshots()
        self._now = now
        # One entry a target, each only touched for its own target: no lock is needed.
        self._opened: set[TargetName] = set()
        self._due_s: dict[TargetName, float] = {}

    def new_branch(self) -> str:
        """A name for the branch of a write that begins now."""
        return self.owner.branch(self._now())

    def opened(self, target: TargetName, table: LakeTable) -> None:
        """Remove dead attempts' branches, at the target's first opening in this process."""
        if target in self._opened:
            return
        self._opened.add(target)
        with _logged(target):
            self._sweep(target, table, between_writes=False)

    def written(self, target: TargetName, table: LakeTable) -> bool:
        """After a write: cut the history when the interval has passed since the last time.

        Tells whether it has.
        """
        now = self._now()
        if now < self._due_s.get(target, now):
            return False
        self._due_s[target] = now + self.settings.interval_s
        with _logged(target):
            self.run(target, table)
        return True

    def now(self) -> float:
        """The time by this upkeep's clock, in seconds since the epoch."""
        return self._now()

    def run(self, target: TargetName, table: LakeTable) -> None:
        """Remove dead branches and old snapshots with the files only they need, now.

        Raises one of JavaFailure, Fenced, SinkUnavailable; then less was removed.
        """
        begun = time.monotonic()
        table.refresh()
        self._sweep(target, table, between_writes=True)
        before = table.snapshots()
        if not self._expire(target, table):
            return
        table.refresh()
        if (kept := table.snapshots()) == before:
            return  # what is old has a tag
        log.info(
            "snapshots_expired",
            target=str(target),
            expired=before - kept,
            kept=kept,
            seconds=round(time.monotonic() - begun, 3),
        )

    def _sweep(self, target: TargetName, table: LakeTable, *, between_writes: bool) -> None:
        """Remove all dead branches in one commit, tried once: the next upkeep tries again."""
        dead: list[str] = []
        for branch in table.branches():
            attempt = attempt_of(branch)
            if attempt is None:
                if branch.startswith(BRANCH_PREFIX):
                    log.warning("branch_of_unknown_owner", target=str(target), branch=branch)
                continue
            # Between two writes of the target a branch of our own run is one whose removal
            # failed.
            ours = between_writes and attempt.owner == self.owner
            age_s = self.settings.foreign_branches_older_than_s
            if ours or is_dead(attempt, self.owner, self._now(), age_s):
                dead.append(branch)
        if dead:
            table.commit(lambda builder: [builder.removeRef(branch) for branch in dead])
            table.refresh()
            log.info("dead_branches_removed", target=str(target), branches=dead)

    def _expire(self, target: TargetName, table: LakeTable) -> bool:
        """Expire snapshots; False when none is old enough to be looked at."""
        if (table.property("gc.enabled") or "true").lower() == "false":
            return False  # whoever set it shares the files with another table
        cutoff_ms = int((self._now() - self.settings.expire_snapshots_older_than_s) * 1000)
        if table.snapshots() < 2 or table.oldest_ms() >= cutoff_ms:
            return False
        stamped = self._stamped(target, table)
        # Whatever others commit before the expiry does, and however often it is applied again:
        # the snapshot that carries the marks is never older than the cut.
        table.expire(min(cutoff_ms, table.time_ms(stamped)), self.settings.retain_last)
        return True

    def _stamped(self, target: TargetName, table: LakeTable) -> int:
        """The stamped snapshot that main shows, made where somebody else committed on top.

        Else the marks would be in a snapshot that ages, and go when it is expired.
        """
        main = table.head(MAIN)
        mark = None if main is None else nearest_mark(table, main)
        if main is None or mark is None:
            raise SinkUnavailable(f"no snapshot carries {HWM}: nothing is expired")
        if mark.snapshot == main:
            return main
        self.foreign.tell(target, table, mark.above)
        return restamp(table, self.new_branch(), main, (HWM, mark.text))


@contextmanager
def _logged(target: TargetName) -> Iterator[None]:
    try:
        yield
    except (Fenced, SinkUnavailable, *JavaFailure) as error:
        log.warning("upkeep_failed", target=str(target), reason=reason(error))
