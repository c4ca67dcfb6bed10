"""Messages to the committer: what was read and sent on, and what the stores hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from offsets.load import Broken
from offsets.log_epochs import EpochSpan, LogEpoch
from offsets.position import Run, TopicPartition
from offsets.running import Running
from offsets.snapshot import SpillMark


@dataclass(frozen=True, slots=True)
class EpochStarted:
    """A partition is read from ``start`` under a new epoch.

    ``until`` is the log's end as it was then, ``confirmed`` the broker's last known commit,
    ``log`` the leader epoch and ``running`` the numbers that were recorded with the start.
    """

    epoch: int
    source: TopicPartition
    start: int
    until: int
    confirmed: int | None
    log: LogEpoch | None = None
    running: Running | None = None


@dataclass(frozen=True, slots=True)
class Dispatched:
    """A fetched batch is about to be sent on: it comes before the data, always.

    ``lanes``: target -> first and last message offset it gets. Empty: only the position moved.
    ``runs``: target -> the split messages for it that became whole with this batch.
    ``fragments``: all messages that lack parts after it, by name, with their first part's offset.
    ``running``: the producer's numbers after it, by stream, where it gives any.
    """

    epoch: int
    source: TopicPartition
    next_offset: int
    lanes: Mapping[str, tuple[int, int]]
    time_ms: int | None = None
    runs: Mapping[str, tuple[Run, ...]] = field(default_factory=dict)
    fragments: Mapping[str, int] = field(default_factory=dict)
    epochs: tuple[EpochSpan, ...] = ()
    running: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FormatDetected:
    """A topic's format was detected from its messages. Comes before any ``Dispatched`` of them."""

    topic: str
    format: str


@dataclass(frozen=True, slots=True)
class Confirmed:
    """The broker has these commits."""

    frontiers: Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class Release:
    """Partitions go away: save, then answer with their frontiers (an ``ask``)."""

    sources: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class SaveNow:
    """Save at once and hand the frontiers on as the last ones: the drain is over."""


@dataclass(frozen=True, slots=True)
class Saved:
    """The stores before the group's commit hold these frontiers, durably."""

    frontiers: Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class SaveFailed:
    """A store did not take the snapshot: ``reason`` names it. Stores before it may have it."""

    reason: str


@dataclass(frozen=True, slots=True)
class SpillListed:
    """The committer hears what a target's spill holds now; None: there is none any more.

    It comes before the ``Written`` of those messages, so that no snapshot counts them as done
    without naming where they are.
    """

    target: str
    mark: SpillMark | None


@dataclass(frozen=True, slots=True)
class LoadBroken:
    """The load that fills the table ``into`` can't go on as it was begun.

    It comes before the ``Written`` of messages that the table is not to get any more.
    """

    into: str
    why: Broken
