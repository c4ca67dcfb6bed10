"""Raw messages of one lane: several at once, as columns, before anybody decodes them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

from changes.model.model import TableName
from changes.model.records import Values
from offsets.position import TopicPartition

MESSAGE_OVERHEAD = 80
"""Bytes that a message costs besides its own: a bytes object's head, an int, two list places."""


@dataclass(frozen=True, slots=True)
class Messages:
    """Messages in the order of their offsets: one object for all of them, never one for each.

    ``size`` is what they take in memory, in bytes: their values, and MESSAGE_OVERHEAD for each.
    """

    offsets: Sequence[int]
    values: Sequence[bytes]
    size: int

    @classmethod
    def of(cls, offsets: Sequence[int], values: Sequence[bytes]) -> Messages:
        """Measure messages, their values in one piece of memory."""
        together = Values.of(values)
        return cls(offsets, together, sum(together.sizes) + MESSAGE_OVERHEAD * len(together))

    @classmethod
    def joined(cls, parts: Sequence[Messages]) -> Messages:
        """Put several together, in this order."""
        if len(parts) == 1:
            return parts[0]
        offsets = list(chain.from_iterable(part.offsets for part in parts))
        values = Values.joined(part.values for part in parts)
        return cls(offsets, values, sum(part.size for part in parts))

    def __len__(self) -> int:
        return len(self.offsets)

    @property
    def first(self) -> int:
        """The lowest offset."""
        return self.offsets[0]

    @property
    def last(self) -> int:
        """The highest offset."""
        return self.offsets[-1]

    def above(self, mark: int) -> Messages | None:
        """Those with an offset above ``mark``, None when there are none. Their size is their share
        of the whole by number."""
        if self.first > mark:
            return self
        cut = bisect_right(self.offsets, mark)
        if cut == len(self.offsets):
            return None
        values = self.values[cut:]
        return Messages(self.offsets[cut:], values, self.size * len(values) // len(self.values))


# Values of a spill: the raw messages of a target in quarantine.


class SpillRecord(NamedTuple):
    """A raw message of a target in quarantine."""

    source: TopicPartition
    offset: int
    ddl: bool
    value: bytes
    table: TableName | None = None
    """See ``Share.table``: set when the spill is read, by the routes of that time."""


@dataclass(frozen=True, slots=True)
class SpillState:
    """What a spill holds, durably. ``lanes``: the first and last offset of each."""

    bytes: int = 0
    messages: int = 0
    lanes: Mapping[TopicPartition, tuple[int, int]] = field(default_factory=dict)
