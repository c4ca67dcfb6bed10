"""Detects that a target was rolled back or replaced since it was last looked at.

What a target is known to have published (by the last run's file, then by this run's own writes) is
compared with what it shows whenever it is opened: at its first data, after each assignment, and
when it is released from quarantine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from actors.contract import effects as fx
from actors.contract import messages as msg
from actors.contract.writes import TargetState
from offsets.position import NO_OFFSET, TopicPartition
from offsets.recovery import gaps, ways_out
from offsets.snapshot import TargetMark, unwritten
from settings.shell import quoted

BEGINS_LATE = (
    "`binlogd tables load` reads its rows from the database, `binlogd offsets reset --to earliest "
    "--execute` what Kafka still has of them. A second copy needs a `group` of its own"
)


@dataclass(slots=True)
class PublishHistory:
    """What one target is known to have published, and from where on it is fed. Nobody else assigns
    its fields."""

    recorded: TargetMark | None = None
    """By the last run, then by our own writes."""
    _fed: dict[TopicPartition, tuple[int, int]] = field(default_factory=dict)
    """Of each lane, its assignment and the first offset that still comes under it."""
    _unrecorded: set[TopicPartition] = field(default_factory=set)
    """Those of these lanes without a record of how far they were read before."""
    _adopted: dict[TopicPartition, int] = field(default_factory=dict)
    """Those that began at the group's commit, which is this, without a record of the target."""
    _fenced_at: Mapping[TopicPartition, int] = field(default_factory=dict)
    """The marks as they were known when a write was fenced, until they are read again."""

    def fed_by(self, batch: msg.RecordBatch) -> None:
        """Note where the reading of a partition began that feeds it."""
        source = batch.source
        if self._fed.get(source, (-1, 0))[0] == batch.epoch:
            return
        self._fed[source] = (batch.epoch, batch.start)
        (self._unrecorded.add if batch.unrecorded else self._unrecorded.discard)(source)
        self._adopted.pop(source, None)
        if batch.adopted is not None:
            self._adopted[source] = batch.adopted

    def is_fed_from(self, source: TopicPartition, epoch: int | None, first: int) -> bool:
        """Whether all from an offset on has come, or comes, under this assignment."""
        of, start = self._fed.get(source, (-1, 0))
        return of == epoch and start <= first

    def wrote(
        self, state: TargetState, own: Mapping[TopicPartition, int], *, renamed: bool
    ) -> None:
        """A write of ours moved its own marks: from now on nothing below may be missing.

        Another table has the name once it was ``renamed``: what the former one held counts no more.
        Inside a message no version is recorded: marks restored from it would lack the step.
        """
        before = {} if renamed or self.recorded is None else self.recorded.hwms
        version = None if state.steps else state.version
        differs = state.rows_may_differ
        self.recorded = TargetMark(version, {**before, **own}, rows_may_differ=differs)
        for source, hwm in own.items():
            epoch, start = self._fed.get(source, (-1, 0))
            # Below the mark nothing comes again under this assignment.
            self._fed[source] = (epoch, max(start, hwm + 1))

    def gave_up(self, fenced_at: Mapping[TopicPartition, int]) -> None:
        """A write was given up; ``fenced_at``: where the marks were thought to be, if fenced."""
        self._fenced_at = fenced_at

    def moved_back(self, name: str, found: TargetState) -> str | None:
        """After a fenced write: the lane that shows less than it did, which no writer does."""
        fenced, self._fenced_at = self._fenced_at, {}
        for source, before in fenced.items():
            now = found.hwms.get(source)
            if now is None or now < before:
                return (
                    f"{name}: lane {source} stood at {before} and now at {now}: the target was"
                    f" rolled back or recreated while this daemon ran. {ways_out('', name)}"
                )
        return None

    def gap(
        self, name: str, found: TargetState, spilled: Mapping[TopicPartition, int], pipeline: str
    ) -> str | None:
        """Why the target can't be written on from here, None where all is well. ``spilled``: a
        release begins with what is spilled."""
        starts = {source: start for source, (_, start) in self._fed.items()}
        if (skipped := self._skipped(name, found, starts, pipeline)) is not None:
            return skipped
        if self.recorded is None:
            return None
        missing = gaps(self.recorded.hwms, found.hwms, {**starts, **spilled})
        if not missing:
            return None
        what = "the table is gone" if found.schema is None else "it was rolled back or recreated"
        return (
            f"{name}: {what}: {'; '.join(map(str, missing))}: changes in between would be "
            f"missing for ever. {ways_out(pipeline, name, missing[0])}"
        )

    def _skipped(
        self,
        name: str,
        found: TargetState,
        starts: Mapping[TopicPartition, int],
        pipeline: str,
    ) -> str | None:
        """Why it has a hole below where reading begins: every record of positions was lost (or the
        group is another), and the configured start is beyond what it holds."""
        known = {} if self.recorded is None else self.recorded.hwms
        for source in sorted(self._unrecorded - known.keys()):
            hwm = found.hwms.get(source, NO_OFFSET)
            if hwm > NO_OFFSET and hwm + 1 < starts[source]:
                place = f"--topic {quoted(source.topic)} --partition {source.partition}"
                return (
                    f"{name}: holds {source} through {hwm}, no position is recorded, and "
                    f"reading begins at {starts[source]}, as configured: changes in between would "
                    f"be missing for ever. `binlogd offsets reset --pipeline {quoted(pipeline)} "
                    f"{place} --to earliest` reads what the log still has, and targets drop what "
                    "they hold; where they are right as they are, force the start"
                )
        return None

    def may_lack(self, name: str, found: TargetState) -> str | None:
        """Why a target may lack rows: its spill was discarded, which its table does not say yet; or
        it is new, and the group's commit is of a daemon with other tables, or of this one before it
        lost its state and the table."""
        if self.recorded is not None and (lost := unwritten(self.recorded.rows_may_differ)):
            return f"{name}: {lost}"
        if found.schema is not None or found.hwms or self.recorded is not None:
            return None
        source = min(self._adopted, default=None)
        if source is None:
            return None
        return (
            f"{name}: it was not there, and reading began at {source} offset "
            f"{self._adopted[source]}, where the group's commit was: nothing recorded says what "
            "the table had before"
        )

    def remarks(self, name: str, found: TargetState) -> list[fx.TargetEffect]:
        """Warnings: nothing is missing, but the target's history was replaced; or its rows may
        differ, which was not reported here because of a crash, or because another member wrote it.
        """
        out: list[fx.TargetEffect] = []
        recorded, mark = self.recorded, found.rows_may_differ
        if mark is not None and (recorded is None or recorded.rows_may_differ != mark):
            out.append(fx.Log("warning", "rows_may_differ", {"target": name, "what": mark}))
        if found.diverged and recorded is not None:
            fields = {"target": name, "recorded": recorded.version, "now": found.version}
            out.append(fx.Log("warning", "history_replaced", fields))
        return out
