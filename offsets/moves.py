"""Moves of a target's marks by an operator: what a reset leaves to be done in the sink."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from offsets.position import TopicPartition


@dataclass(frozen=True, slots=True)
class MarkMoves:
    """``lower``: a lane's mark is this at most, so what lies above it is applied again. ``lift``:
    it is this at least, so what lies below it is skipped.

    In this form, not as new marks, repeating it changes nothing, and what was published between
    plan and move stays right. A lane that the target does not have gets none: a keyed target
    would then look as if it held another partition's rows.
    """

    lower: Mapping[TopicPartition, int] = field(default_factory=dict)
    lift: Mapping[TopicPartition, int] = field(default_factory=dict)

    def of(self, marks: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """The marks as they are to be."""
        lowered = {s: min(mark, self.lower.get(s, mark)) for s, mark in marks.items()}
        return {s: max(mark, self.lift.get(s, mark)) for s, mark in lowered.items()}
