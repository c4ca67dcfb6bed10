"""Rebuild of a target, which is read again into another table: what is recorded of it. Pure.

While a rebuild is recorded all of the target's messages go to the new table. The partitions that
feed it are read again from the log's start; every other target drops what it has. Once the new
table has everything that the old one held, it takes its name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from offsets.position import NO_OFFSET, TopicPartition

# Load of a target: a rebuild whose table is filled from the source's own database first. Pure.


@dataclass(frozen=True, slots=True)
class LoadHindered:
    """Why a load can't go on as it was begun, one line.

    ``behind``: of lanes the message behind which it may begin again; none: it is given up.
    """

    reason: str
    behind: Mapping[TopicPartition, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Load:
    """A load of a target by the job of that id.

    ``since``: of each partition that may hold the table, from which message on the stream is
    applied over the rows. ``ends``: of each of these, below which offset the last change is that a
    read of the database may have seen; None while the table is being filled.
    """

    job: str
    since: Mapping[TopicPartition, int]
    ends: Mapping[TopicPartition, int] | None = None
    broken: LoadHindered | None = None

    @property
    def filling(self) -> bool:
        """Whether rows of the database are still to come: nothing of the stream is written."""
        return self.ends is None

    def passed_by(self, frontiers: Mapping[TopicPartition, int]) -> bool:
        """Whether the table is equal to the source as it was at some moment, and has no part that
        is younger than the rest."""
        if self.ends is None or self.broken is not None:
            return False
        return all(frontiers.get(s, 0) >= end for s, end in self.ends.items())

    def is_before_end(self, source: TopicPartition, offset: int) -> bool:
        """Whether what a message changes may be in the loaded rows already."""
        if self.ends is None:
            return True
        # Of a partition that the load does not know nothing was shown.
        return source not in self.ends or offset < self.ends[source]


FOR_GOOD = 5
"""Attempts to exchange the names, after which the rebuild is given up: a quarter of an hour, for
the job waits a minute after the first one, and twice as long after each."""


@dataclass(frozen=True, slots=True)
class SwapRefused:
    """Why the new table could not take its name, one line, and how often that was tried."""

    reason: str
    attempts: int = FOR_GOOD

    @property
    def for_good(self) -> bool:
        """Whether it is not tried again: the job gives the rebuild up."""
        return self.attempts >= FOR_GOOD


@dataclass(frozen=True, slots=True)
class Rebuild:
    """One rebuild. ``into``: the new table's name, as a target's.

    ``until``: of each lane the last message that the old table may hold. The new one is complete
    when the frontiers are beyond these. ``keep_old``: the old table gets another name and stays.
    ``cancelled``: it is given up, and what was made of it is still to be removed. ``load``: the
    new table is filled from the database first. ``leftover``: tables of its earlier attempts, still
    to be removed. ``refused``: the new table can't take its name, for good or for now; its job
    gives the rebuild up, or has it tried again. ``begun_at``: of lanes of a load, from where on the
    old table has got nothing since its first attempt. ``lost``: of one that was given up, the
    offsets below which the log has lost what the old table did not get.
    """

    into: str
    until: Mapping[TopicPartition, int]
    keep_old: bool = False
    cancelled: bool = False
    load: Load | None = None
    leftover: tuple[str, ...] = ()
    refused: SwapRefused | None = None
    begun_at: Mapping[TopicPartition, int] = field(default_factory=dict)
    lost: Mapping[TopicPartition, int] = field(default_factory=dict)

    def passed_by(self, frontiers: Mapping[TopicPartition, int]) -> bool:
        """Whether these frontiers have passed everything that the rebuild reads again."""
        if self.cancelled:
            return False
        if self.load is not None and not self.load.passed_by(frontiers):
            return False
        return all(frontiers.get(source, 0) > last for source, last in self.until.items())

    @property
    def reads(self) -> frozenset[TopicPartition]:
        """The partitions that it needs without a gap."""
        if self.cancelled:
            return frozenset()
        since = () if self.load is None else self.load.since
        return frozenset({*self.until, *since})

    def ahead(self, marks: Mapping[TopicPartition, int]) -> Rebuild:
        """The old table turned out to hold more than was recorded of it: it ends later."""
        last = {source: max(at, marks.get(source, at)) for source, at in self.until.items()}
        return replace(self, until={**marks, **last})


def missing_in_log(
    lanes: Mapping[TopicPartition, int], low: Mapping[TopicPartition, int]
) -> list[str]:
    """Which lanes the log does not hold from their beginning any more, a text for each."""
    return [
        f"{source} begins at offset {low[source]}, not at 0"
        for source in sorted(lanes)
        if low[source] > 0
    ]


def last_held(
    marks: Mapping[TopicPartition, int],
    spilled: Mapping[TopicPartition, tuple[int, int]],
    frontiers: Mapping[TopicPartition, int],
) -> dict[TopicPartition, int]:
    """Of each lane that feeds a target the last message that may be in it, or in its spill.

    Below the frontier everything is done; a mark may be ahead of it, by a write whose record came
    too late for a crash.
    """
    return {
        source: max(marks.get(source, NO_OFFSET), frontiers.get(source, 0) - 1)
        for source in marks.keys() | spilled.keys()
    }
