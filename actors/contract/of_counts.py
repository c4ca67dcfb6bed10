"""Messages about counts: what targets' marks carry, and what the table of counts has of that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from changes.model.model import KeyBound, TargetName
from offsets.counts import LaneCounts
from offsets.position import TopicPartition


@dataclass(frozen=True, slots=True)
class CountsHeld:
    """What a target's marks carry: to the actor that folds counts."""

    target: TargetName
    counts: Mapping[TopicPartition, LaneCounts]


@dataclass(frozen=True, slots=True)
class CountsFolded:
    """The table of counts has these of a target: to its processor."""

    target: TargetName
    counts: Mapping[TopicPartition, LaneCounts]


@dataclass(frozen=True, slots=True)
class OwnStaged:
    """Rows of a table of binlogd's own are in a staged file, with the bounds of their keys."""

    path: str
    bounds: tuple[KeyBound, ...]


@dataclass(frozen=True, slots=True)
class OwnNotStaged:
    """The staging folder did not take them (disk full...): nothing of them remains."""

    reason: str


@dataclass(frozen=True, slots=True)
class SideFigures:
    """What an actor beside the flow says of its work: ``error`` why that went wrong last, since
    that Unix second."""

    error: str | None
    failing_since: float | None = None
