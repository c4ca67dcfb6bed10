"""Load of a target: a rebuild whose table is filled from the source's own database first. Pure.

The table is filled in two parts. First come the rows of the database, in chunks; meanwhile the
stream's messages from ``since`` on are kept in the table's spill. Then the stream is applied over
the rows. No loaded row ever overwrites, for all of them are there before the stream's first change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from offsets.position import TopicPartition


@dataclass(frozen=True, slots=True)
class Broken:
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
    broken: Broken | None = None

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
