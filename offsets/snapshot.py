"""Snapshot: what a pipeline must remember between two runs. ``snapshot_text`` has its text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from offsets.log_epochs import LogEpoch
from offsets.moves import MarkMoves
from offsets.position import TopicPartition
from offsets.rebuild import Rebuild
from offsets.running import Running


@dataclass(frozen=True, slots=True)
class PartitionState:
    """Where one partition stands.

    ``frontier``: every message below it is done. ``confirmed``: the last frontier that the broker
    confirmed, None before the first one. ``log``: the epoch of the log below it.
    ``reset``: an operator put the frontier here, and until the broker has confirmed one the group's
    commit is what it was before: it says nothing. ``running``: the producer's numbers there.
    """

    frontier: int
    confirmed: int | None = None
    log: LogEpoch | None = None
    reset: bool = False
    running: Running | None = None


@dataclass(frozen=True, slots=True)
class TargetMark:
    """What a target last published: the sink's own name of that state, and its marks.

    ``moves``: what a reset did to the marks, recorded with the new frontiers and still to be done
    in the target, before anything is read. ``rows_may_differ`` repeats what the target says of its
    stored rows (``offsets.doubts``), so that it is known before the target is opened.
    """

    version: str | None
    hwms: Mapping[TopicPartition, int]
    moves: MarkMoves | None = None
    rows_may_differ: str | None = None


@dataclass(frozen=True, slots=True)
class SpillMark:
    """What a target's spill holds: its bytes, and each lane's first and last offset.

    Those messages count as done: the spill is the only place where they are. ``away``: the target
    is not in quarantine, its sink does not answer.
    """

    bytes: int
    lanes: Mapping[TopicPartition, tuple[int, int]]
    away: bool = False


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All that a pipeline must remember between two runs.

    ``forced`` is the configuration's force text that was carried out last: it works once.
    ``formats``: by topic the format that was detected from its messages (``format = "auto"``).
    """

    pipeline: str
    group: str
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    partitions: Mapping[TopicPartition, PartitionState] = field(default_factory=dict)
    targets: Mapping[str, TargetMark] = field(default_factory=dict)
    forced: str | None = None
    spills: Mapping[str, SpillMark] = field(default_factory=dict)
    rebuilds: Mapping[str, Rebuild] = field(default_factory=dict)
    formats: Mapping[str, str] = field(default_factory=dict)

    @property
    def rebuilding(self) -> Mapping[str, Rebuild]:
        """The rebuilds that go on. Of one that was given up a table may be left to be removed."""
        return {target: each for target, each in self.rebuilds.items() if not each.cancelled}
