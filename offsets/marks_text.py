"""How sinks keep a target's marks: JSON ``{"topic:partition": [offset, group, step, counts]}``.

Where the group is unknown there is the offset alone; a third place ``[offset, done, rows]`` is the
step in the message above the mark. Then the mark may be -1. A fourth one is what
``offsets.counts.to_json`` makes; then the third may be null.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

from offsets.counts import LaneCounts, from_json, to_json
from offsets.position import EntryStep, TopicPartition


class MarkEntry(NamedTuple):
    """What the marks say of one lane. ``group`` is empty where it is unknown."""

    lane: TopicPartition
    mark: int
    group: str = ""
    step: EntryStep | None = None
    counts: LaneCounts | None = None

    def as_json(self) -> object:
        """Its value in the text."""
        if self.counts is not None:
            return [self.mark, self.group, self.step and list(self.step), to_json(self.counts)]
        if self.step is not None:
            return [self.mark, self.group, list(self.step)]
        return [self.mark, self.group] if self.group else self.mark


def read_entries(text: str) -> Iterator[MarkEntry]:
    """The entries of such a text."""
    for lane, entry in json.loads(text).items():
        mark, group, step, counts = (*entry, None, None)[:4] if isinstance(entry, list) else (
            entry, "", None, None
        )  # fmt: skip
        at = EntryStep(*map(int, step)) if step else None
        counted = from_json(counts) if counts else None
        yield MarkEntry(TopicPartition.parse(lane), int(mark), group, at, counted)
