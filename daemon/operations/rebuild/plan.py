"""``binlogd tables rebuild``: decides whether a target can be read again from its log, and from
where."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from changes.model.model import TargetName
from daemon.config.pipeline_config import PipelineConfig
from daemon.operations.reset.offset_reset import refuse_members
from daemon.state.edits import EditRefused
from offsets.position import TopicPartition
from offsets.rebuild import missing_in_log
from offsets.rebuild_steps import begun, behind, cancelled, lanes_of
from offsets.snapshot import Snapshot
from settings.shell import quoted
from sources.base.port import NotAnswered
from sparkwriter.kit.stand_in_names import new_table, put_aside

__all__ = ["RebuildRequest", "new_table", "pipeline_of", "put_aside"]


@dataclass(frozen=True, slots=True)
class RebuildRequest:
    """An operator's request. ``number`` makes the new table's name unique. ``own`` is the number of
    members that the pipeline itself has in its group: 0 if it does not run.

    It is a ``daemon.state.edits.Change``.
    """

    pipeline: PipelineConfig
    target: str
    number: str
    force: bool = False
    keep_old: bool = False
    cancel: bool = False
    own: int = 0

    def __call__(self, snapshot: Snapshot) -> Snapshot:
        """The snapshot with the rebuild started or cancelled. Raises EditRefused.

        Queries the broker; any thread.
        """
        if self.cancel:
            if self.target not in snapshot.rebuilds:
                raise EditRefused(f"{self.target} is not being rebuilt")
            load = snapshot.rebuilds[self.target].load
            if load is not None and not self.force:
                raise EditRefused(
                    f"{self.target} is being loaded: `binlogd jobs cancel {quoted(load.job)}` "
                    "gives that up. With --force it is given up here: where the daemon does not "
                    "start, or the job's record is lost"
                )
            return self._cancelled(snapshot)
        if self.target in snapshot.rebuilding:
            raise EditRefused(f"{self.target} is being rebuilt already")
        lanes = lanes_of(snapshot, self.target)
        if not lanes:
            raise EditRefused(f"{self.target}: no partition is recorded that it was fed from")
        if (sink := TargetName.parse(self.target).sink) not in self.pipeline.sinks:
            # Once recorded, the rebuild could neither end nor be cancelled.
            raise EditRefused(f"{self.target}: the configuration has no sink {sink!r}")
        self._check_members()
        low = self._low(lanes)
        into = str(new_table(TargetName.parse(self.target), self.number))
        # What the log has lost is in the old table alone.
        return begun(snapshot, self.target, into, low, self.keep_old or self.force)

    def _cancelled(self, snapshot: Snapshot) -> Snapshot:
        try:
            questions = self.pipeline.source().questions()
            low = questions.begins(sorted(behind(snapshot.rebuilds[self.target])))
        except NotAnswered as error:
            if error.away:
                raise EditRefused(f"the broker can't be queried: {error}") from error
            low = {}  # the topic is not there any more
        return cancelled(snapshot, self.target, low)

    def _check_members(self) -> None:
        try:
            refuse_members(self.pipeline.source(), self.pipeline.group, self.own)
        except EditRefused as error:
            raise EditRefused(
                f"{self.target}: a table is rebuilt by a daemon that has all partitions: {error}"
            ) from error

    def _low(self, lanes: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        try:
            questions = self.pipeline.source().questions()
            low = questions.begins(sorted(lanes))
            holed = questions.compacted({source.topic for source in lanes})
        except NotAnswered as error:
            raise EditRefused(f"the broker can't be queried: {error}") from error
        missing = missing_in_log(lanes, low)
        missing += [f"{topic} {said}" for topic, said in sorted(holed.items())]
        if missing and not self.force:
            raise EditRefused(
                f"{self.target}: the log is not whole any more: {'; '.join(missing)}. What was "
                "written before and has not changed since would be missing from the new table. "
                "With --force it is rebuilt nevertheless, and the old one kept beside it"
            )
        return low


def pipeline_of(snapshots: Iterable[Snapshot], target: str) -> Snapshot:
    """The snapshot that owns the target. Raises EditRefused."""
    known: list[str] = []
    for snapshot in snapshots:
        names = {*snapshot.targets, *snapshot.spills, *snapshot.rebuilds}
        if target in names:
            return snapshot
        known += sorted(names)
    listed = f"; there are: {', '.join(known[:20])}" if known else ""
    raise EditRefused(f"{target}: unknown, nothing of it was ever published{listed}")
