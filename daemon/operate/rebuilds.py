"""Ends rebuilds: new tables take their names while the pipeline does not run.

This happens when a pipeline starts. So it makes no difference whether the daemon stopped it for
that, was stopped itself, or crashed in the middle: the snapshot records what is left to do.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

import structlog

from actors.contract.ports import BatchWriter, SinkUnavailable, Swaps, SwapTooEarly, TargetRefused
from actors.contract.writes import Swap
from actors.runtime.waits import Waits
from changes.model import TargetName
from daemon.operate.rebuild_plan import put_aside
from daemon.spills.file import SpillFolder
from offsets.load_steps import tidied
from offsets.rebuild import Rebuild
from offsets.rebuild_steps import delayed, ended, is_complete
from offsets.snapshot import Snapshot, TargetMark

FIRST_WAIT_S = 1.0
LONGEST_WAIT_S = 30.0
"""The first wait between two attempts. Each wait is twice the one before, so that a catalog that
restarts is found soon, and one that stays away is asked seldom."""

AT_START = 5
"""Attempts, 15 s in all: the operator who starts the daemon hears soon, and systemd tries again."""

WHILE_RUNNING = 20
"""Attempts, 8 minutes in all: nothing restarts a pipeline that has ended for this."""

T = TypeVar("T")


class RebuildNotEnded(Exception):
    """A rebuild could not be ended: one line. The next start goes on from there."""


class Rebuilds:
    """Ends the rebuilds of one stopped pipeline. For one thread."""

    def __init__(
        self,
        sinks: Callable[[], Mapping[str, BatchWriter]],
        spills: SpillFolder,
        save: Callable[[Snapshot], None],
        reached: Callable[[TargetName], bool],
        attempts: int = AT_START,
    ) -> None:
        """``save`` makes a snapshot durable. ``reached``: whether a route leads to a target.
        ``attempts``: how often a sink that is away is tried."""
        self._reached = reached
        self._attempts = attempts
        self._make = sinks
        self._sinks: Mapping[str, BatchWriter] = {}
        self._spills = spills
        self._save = save

    def settle(self, snapshot: Snapshot) -> Snapshot:
        """Do what is due. Returns the snapshot afterwards, which is recorded.

        Raises RebuildNotEnded, and what ``save`` raises.
        """
        for target in sorted(snapshot.rebuilds):
            try:
                snapshot = self._step(snapshot, target)
            except (SinkUnavailable, TargetRefused, OSError) as error:
                raise RebuildNotEnded(f"the rebuild of {target} can't be ended: {error}") from error
        return snapshot

    def _step(self, snapshot: Snapshot, target: str) -> Snapshot:
        rebuild = snapshot.rebuilds[target]
        log: Any = structlog.get_logger().bind(pipeline=snapshot.pipeline, actor="supervisor")
        fields = {"target": target, "into": rebuild.into}
        if rebuild.leftover:
            for name in rebuild.leftover:
                self._remove(TargetName.parse(name))
            snapshot = tidied(snapshot, target)
            self._save(snapshot)
        if rebuild.cancelled:
            self._remove(TargetName.parse(rebuild.into))
            snapshot = ended(snapshot, target)
            log.info("rebuild_given_up", **fields)
        elif not self._reached(TargetName.parse(target)):
            # Its later changes were dropped: the new table would take the name with a gap.
            raise RebuildNotEnded(
                f"{target} is being rebuilt, and no route leads to it any more: what is read again "
                f"does not come to it. `binlogd tables rebuild {target} --cancel` leaves the old "
                "table as it is; or have a route take it again"
            )
        elif not is_complete(snapshot, target):
            log.info("rebuilding", **fields)
            return snapshot
        else:
            try:
                snapshot = self._swapped(snapshot, target, rebuild)
                log.info("rebuilt", **fields, old_kept=rebuild.keep_old)
            except SwapTooEarly as early:
                snapshot = delayed(snapshot, target, early.marks)
                marks = {str(source): at for source, at in early.marks.items()}
                log.warning("rebuild_goes_on", **fields, old_table_holds=marks)
        self._save(snapshot)
        return snapshot

    def _swapped(self, snapshot: Snapshot, target: str, rebuild: Rebuild) -> Snapshot:
        old, new = TargetName.parse(target), TargetName.parse(rebuild.into)
        frontiers = {source: state.frontier for source, state in snapshot.partitions.items()}
        swap = Swap(old, new, put_aside(old, new), frontiers, rebuild.keep_old)
        state = self._again(lambda: self._sink(old).swap(swap))
        # All of it is in the log, and so now in the table: it must not be replayed.
        self._spills.drop(old)
        # What a crash left there is not listed, so it does not count as done, and is read again.
        self._spills.drop(new)
        done = ended(snapshot, target)
        mark = TargetMark(state.version, dict(state.hwms), rows_may_differ=state.rows_may_differ)
        return replace(done, targets={**done.targets, target: mark})

    def _remove(self, new: TargetName) -> None:
        self._again(lambda: self._sink(new).remove(new))
        self._spills.drop(new)

    def _sink(self, target: TargetName) -> Swaps:
        if not self._sinks:
            self._sinks = self._make()
        sink = self._sinks.get(target.sink)
        if not isinstance(sink, Swaps):
            raise TargetRefused(f"{target}: sink {target.sink} can't exchange tables")
        return sink

    def _again(self, act: Callable[[], T]) -> T:
        for attempt in range(1, self._attempts):
            try:
                return act()
            except SinkUnavailable as error:
                wait_s = Waits(FIRST_WAIT_S, LONGEST_WAIT_S).after(attempt)
                log: Any = structlog.get_logger().bind(actor="supervisor")
                log.warning("sink_unavailable", reason=str(error), retry_in_s=wait_s)
                threading.Event().wait(wait_s)
        return act()
