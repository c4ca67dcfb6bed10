"""What is known of a pipeline's logs beside the group: their ends, and what is kept of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from offsets.position import TopicPartition

OPEN_S = 10.0
"""A transaction that is open for so long is reported: a producer ends its own in a second or two,
and one that has died keeps all readers waiting until the broker aborts it, after a quarter of an
hour by default, or never."""


@dataclass(frozen=True, slots=True)
class LogEnds:
    """The logs' ends as they were reported, and why others are missing (``error``). ``stable``:
    where reading of what is committed ends, before the first transaction that is open; only where
    that is before the end."""

    ends: Mapping[TopicPartition, int]
    error: str | None = None
    stable: Mapping[TopicPartition, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class KeptRecords:
    """What is kept: the first offset of each log, and by topic the seconds for which a record is
    kept. A topic that is never cut by time (compacted alone, or for ever) is not in it.
    ``refused``: why the broker does not tell for how long."""

    starts: Mapping[TopicPartition, int] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)
    refused: str | None = None


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """Nothing at or behind ``offset`` can be read until a transaction ends: ``seconds`` so far."""

    offset: int
    seconds: float


@dataclass(frozen=True, slots=True)
class LogFigures:
    """The ends of one pipeline's logs. ``unknown_s``: for how long some are unknown, None while all
    are known. ``error``: why. ``open``: where records can't be read yet."""

    ends: Mapping[TopicPartition, int] = field(default_factory=dict)
    unknown_s: float | None = 0.0
    error: str | None = None
    kept: KeptRecords = field(default_factory=KeptRecords)
    open: Mapping[TopicPartition, OpenTransaction] = field(default_factory=dict)
