"""What counting gives: by target, partition and minute what is in the log and what should be.

Pure values. A minute is a whole number since 1970, by the source's clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from offsets.counts import RowCounts
from offsets.position import TopicPartition


class CellKey(NamedTuple):
    """What is counted together."""

    target: str
    topic: str
    partition: int
    minute: int


@dataclass(frozen=True, slots=True)
class Cell:
    """``expected``: how many changes the source says it made; None where nothing tells it of all.
    What is missing has no minute of its own: it counts to its transaction's last one."""

    found: RowCounts
    expected: int | None


@dataclass(frozen=True, slots=True)
class LackingTransaction:
    """A transaction of which the log lacks row events of a table. ``source`` and ``end``: where its
    END is. ``expected`` and ``found``: its events of the table, of which a changed key is two."""

    transaction: str
    source: TopicPartition
    end: int
    minute: int
    table: str
    targets: tuple[str, ...]
    expected: int
    found: int


@dataclass(frozen=True, slots=True)
class Untold:
    """Why something can't be told, how often, and the first place of it."""

    why: str
    count: int
    source: TopicPartition
    offset: int
    targets: tuple[str, ...]
    """Of which targets; empty: of all."""
    transaction: str | None = None
    of_records: bool = False
    """It keeps records from being counted, whoever says how many there are."""


@dataclass(frozen=True, slots=True)
class LogCounts:
    """What one pipeline's log has. ``differences`` and ``untold`` are the first thousand;
    ``more``: how many differences were left out. ``lacking``: by target the number of its
    differences, with those. ``repeated``: of each partition how many messages came again, and were
    counted once. ``read``: by target the rows read from the table, which are in no minute.
    ``ends``: the partitions with ends of transactions. ``begun_only``: the transactions of the
    range with a BEGIN and nothing else of an asked table: statements have no more, and nor has one
    of which all else is lost."""

    cells: Mapping[CellKey, Cell]
    differences: tuple[LackingTransaction, ...]
    more: int
    untold: tuple[Untold, ...]
    repeated: Mapping[TopicPartition, int]
    read: Mapping[str, int]
    ends: frozenset[TopicPartition]
    begun_only: int = 0
    lacking: Mapping[str, int] = field(default_factory=dict)
