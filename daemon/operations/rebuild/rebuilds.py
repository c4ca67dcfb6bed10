"""Ends rebuilds: new tables take their names while the pipeline does not run.

This happens when a pipeline starts. So it makes no difference whether the daemon stopped it for
that, was stopped itself, or crashed in the middle: the snapshot records what is left to do.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Protocol, cast

import structlog

from actors.contract.ports import BatchWriter, Swaps, SwapTooEarly
from actors.contract.writes import Doubt, StagedBatch, Swap, TargetState
from actors.runtime.backoff import Waits
from changes.model.errors import SinkUnavailable, TargetRefused
from changes.model.model import TargetName
from daemon.operations.rebuild.plan import put_aside
from daemon.state.spills.file import SpillFolder
from offsets.fence import Span
from offsets.position import TopicPartition
from offsets.rebuild import Load, Rebuild, SwapRefused
from offsets.rebuild_steps import delayed, ended, is_complete, refused, tidied, without_spill
from offsets.snapshot import Snapshot, TargetMark
from settings.shell import quoted_pattern
from sparkwriter.kit.store import DROP_BY_HAND

# Marks a table whose load or rebuild was given up after the log had lost what came meanwhile.


def lacking(
    target: TargetName, state: TargetState, lost: Mapping[TopicPartition, int], shape: str
) -> Iterator[StagedBatch]:
    """The writes, without rows, by which a table says so: one a lane. None where there is no table,
    or where its marks are beyond what is lost. ``shape``: see ``StagedBatch``."""
    if state.schema is None or state.mode is None:
        return
    for source, mark in sorted(state.hwms.items()):
        last = lost.get(source, 0) - 1
        if mark < last:
            why = (
                f"the log lost {source} below {last + 1}, which came while a load or rebuild of it "
                "was under way and later given up"
            )
            yield StagedBatch(
                batch_id=f"lost-{source}-{last}",
                target=target,
                mode=state.mode,
                schema=state.schema,
                lanes={source: Span(mark, last)},
                doubts=(Doubt(why, amid=True),),
                shape=shape,
            )


FIRST_WAIT_S = 1.0
LONGEST_WAIT_S = 30.0
"""The first wait between two attempts. Each wait is twice the one before, so that a catalog that
restarts is found soon, and one that stays away is tried seldom."""

AT_START = 5
"""Attempts, 15 s in all: the operator who starts the daemon hears soon, and systemd tries again."""

WHILE_RUNNING = 20
"""Attempts, 8 minutes in all: nothing restarts a pipeline that has ended for this."""


class SwappingWriter(Swaps, BatchWriter, Protocol):
    """A sink's writer that can exchange its tables."""


class RebuildNotEnded(Exception):
    """Whether a table has taken its name is not known, for its sink or the state directory is away:
    one line. The next start goes on from there."""


class Rebuilds:
    """Ends the rebuilds of one stopped pipeline. For one thread.

    A sink that answers and refuses stops nothing: the refusal is recorded with the rebuild, whose
    job gives it up or has it tried again, and the pipeline goes on.
    """

    def __init__(
        self,
        sinks: Callable[[], Mapping[str, BatchWriter]],
        spills: SpillFolder,
        save: Callable[[Snapshot], None],
        shown: Callable[[TargetName], str | None],
        attempts: int = AT_START,
    ) -> None:
        """``save`` makes a snapshot durable. ``shown``: the fingerprint of what the route shows
        that leads to a target, None without a route. ``attempts``: how often a sink that is away is
        tried."""
        self._shown = shown
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
                done = self._step(self._tidied(snapshot, target), target)
            except (SinkUnavailable, OSError) as error:
                raise RebuildNotEnded(f"the rebuild of {target} can't be ended: {error}") from error
            if done != snapshot:
                self._save(done)
                snapshot = done
        return snapshot

    def _tidied(self, snapshot: Snapshot, target: str) -> Snapshot:
        left = snapshot.rebuilds[target].leftover
        gone = [self._is_removed(TargetName.parse(name)) for name in left]
        return tidied(snapshot, target) if left and all(gone) else snapshot

    def _step(self, snapshot: Snapshot, target: str) -> Snapshot:
        rebuild = snapshot.rebuilds[target]
        log: Any = structlog.get_logger().bind(pipeline=snapshot.pipeline, actor="supervisor")
        fields = {"target": target, "into": rebuild.into}
        if rebuild.cancelled:
            if rebuild.lost:
                snapshot = self._marked(snapshot, TargetName.parse(target), rebuild.lost)
            if not self._is_removed(TargetName.parse(rebuild.into)):
                return without_spill(snapshot, rebuild.into)
            log.info("rebuild_given_up", **fields)
            return ended(snapshot, target)
        if rebuild.refused is not None and rebuild.refused.for_good:
            return snapshot
        if self._shown(TargetName.parse(target)) is None:
            # Its later changes were dropped: the new table would take the name with a gap.
            why = "no route leads to it any more, and so what is read again does not come to it"
            log.error("rebuild_refused", **fields, reason=why)
            return refused(snapshot, target, SwapRefused(why))
        if not is_complete(snapshot, target):
            log.info("rebuilding", **fields)
            return snapshot
        try:
            done = self._swapped(snapshot, target, rebuild)
        except SwapTooEarly as early:
            marks = {str(source): at for source, at in early.marks.items()}
            log.warning("rebuild_goes_on", **fields, old_table_holds=marks)
            return delayed(snapshot, target, early.marks)
        except _NotSwapped as error:
            event = "rebuild_refused" if error.why.for_good else "rebuild_waits"
            log.error(event, **fields, reason=error.why.reason, attempts=error.why.attempts)
            return refused(snapshot, target, error.why)
        log.info("rebuilt", **fields, old_kept=rebuild.keep_old)
        return done

    def _swapped(self, snapshot: Snapshot, target: str, rebuild: Rebuild) -> Snapshot:
        old, new = TargetName.parse(target), TargetName.parse(rebuild.into)
        frontiers = {source: state.frontier for source, state in snapshot.partitions.items()}
        swap = Swap(old, new, put_aside(old, new), frontiers, rebuild.keep_old)
        mark = snapshot.targets.get(target)
        had_old = mark is not None and mark.version is not None
        state = self._exchanged(swap, rebuild, had_old)
        # All of it is in the log, and so now in the table: it must not be replayed.
        self._spills.drop(old)
        # What a crash left there is not listed, so it does not count as done, and is read again.
        self._spills.drop(new)
        done = ended(snapshot, target)
        now = TargetMark(state.version, dict(state.hwms), rows_may_differ=state.rows_may_differ)
        return replace(done, targets={**done.targets, target: now})

    def _exchanged(self, swap: Swap, rebuild: Rebuild, had_old: bool) -> TargetState:
        """Raises _NotSwapped where it surely did not happen, SinkUnavailable where nobody knows."""
        before = 0 if rebuild.refused is None else rebuild.refused.attempts
        for attempt in range(1, self._attempts + 1):
            try:
                return self._sink(swap.old).swap(swap)
            except TargetRefused as error:
                raise _NotSwapped(SwapRefused(str(error))) from error
            except SinkUnavailable as error:
                if self._is_as_before(swap, had_old):
                    raise _NotSwapped(SwapRefused(str(error), before + 1)) from error
                if attempt == self._attempts:
                    raise
                self._wait(error, attempt)
        raise AssertionError("no attempt is made")

    def _is_as_before(self, swap: Swap, had_old: bool) -> bool:
        """Whether the sink answers, and both tables have their names still: then it is a lock or
        the like, and the other tables need not wait for it."""
        try:
            names = (swap.new, swap.old) if had_old else (swap.new,)
            return all(self._sink(name).open(name).version is not None for name in names)
        except SinkUnavailable:
            return False
        except TargetRefused:
            # The new one is whole: it is the old one that can't be had, as before the rebuild.
            return True

    def _is_removed(self, new: TargetName) -> bool:
        """Remove a table that takes no name, and its spill; False: not now. What the sink refuses
        to remove stays there for good, by its name."""
        self._spills.drop(new)
        log: Any = structlog.get_logger().bind(actor="supervisor")
        try:
            self._sink(new).remove(new)
        except TargetRefused as error:
            log.error("table_left", table=str(new), reason=str(error), command=DROP_BY_HAND)
        except SinkUnavailable as error:
            log.warning("table_not_removed", table=str(new), reason=str(error))
            return False
        return True

    def _marked(
        self, snapshot: Snapshot, target: TargetName, lost: Mapping[TopicPartition, int]
    ) -> Snapshot:
        """Have the target say that it lacks what the log has lost since; repeating it is harmless.

        Raises SinkUnavailable: once more is read, nobody could tell.
        """
        below = ", ".join(f"{source} below {at}" for source, at in sorted(lost.items()))
        log: Any = structlog.get_logger().bind(pipeline=snapshot.pipeline, actor="supervisor")
        way = f"binlogd tables load {quoted_pattern(target)}"
        log.error("changes_lost", target=str(target), lost=below, command=way)
        try:
            sink, shape = self._sink(target), self._shown(target) or ""
            for batch in lacking(target, sink.open(target), lost, shape):
                state = sink.write(batch)
                mark = TargetMark(state.version, dict(state.hwms), None, state.rows_may_differ)
                targets = {**snapshot.targets, str(target): mark}
                snapshot = replace(snapshot, targets=targets)
        except TargetRefused as error:
            log.error("rows_may_differ", target=str(target), reason=str(error))
        return snapshot

    def _sink(self, target: TargetName) -> SwappingWriter:
        if not self._sinks:
            self._sinks = self._make()
        sink = self._sinks.get(target.sink)
        if not isinstance(sink, Swaps):
            raise TargetRefused(f"{target}: sink {target.sink} can't exchange tables")
        return cast(SwappingWriter, sink)

    def _wait(self, error: SinkUnavailable, attempt: int) -> None:
        wait_s = Waits(FIRST_WAIT_S, LONGEST_WAIT_S).after(attempt)
        log: Any = structlog.get_logger().bind(actor="supervisor")
        log.warning("sink_unavailable", reason=str(error), retry_in_s=wait_s)
        threading.Event().wait(wait_s)


class _NotSwapped(Exception):
    """The names are as they were."""

    def __init__(self, why: SwapRefused) -> None:
        super().__init__(why.reason)
        self.why = why


# The tables that are being read again or loaded, by what is recorded of them. Pure.


def stand_ins(snapshot: Snapshot) -> dict[TargetName, TargetName]:
    """The targets under rebuild, each with the table that gets its changes."""
    return {
        TargetName.parse(target): TargetName.parse(rebuild.into)
        for target, rebuild in snapshot.rebuilds.items()
        if not rebuild.cancelled
    }


def loads_of(snapshot: Snapshot) -> dict[str, Load]:
    """The loads under way, by the name of the table that each fills."""
    return {
        rebuild.into: rebuild.load
        for rebuild in snapshot.rebuilds.values()
        if rebuild.load is not None and not rebuild.cancelled
    }
