"""A partition as it was assigned, which each batch of its messages tells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from actors.contract import messages as msg
from offsets.position import TopicPartition
from offsets.recovery import Watermarks


@dataclass(frozen=True, slots=True)
class AssignedPartition:
    """Its epoch and the log as it was when that began."""

    epoch: int
    log: Watermarks
    start: int
    unrecorded: bool = False
    adopted: int | None = None

    def batch(self, source: TopicPartition, shares: Sequence[msg.Share]) -> msg.RecordBatch:
        """What one processor gets of a fetched batch."""
        size = sum(share.messages.size for share in shares)
        of_log = self.log, self.start, self.unrecorded, self.adopted
        return msg.RecordBatch(self.epoch, source, tuple(shares), size, *of_log)
