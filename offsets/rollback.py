"""Finds targets that show less than they did: rolled back, restored or recreated. Pure.

A target's marks never go back by themselves: each publish moves them on. So a mark below the
recorded one shows that published changes are gone from the target. They are gone for good where
they are not read again either.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from offsets.position import NO_OFFSET, TopicPartition


class Gap(NamedTuple):
    """Of one lane: the target had everything up to ``recorded``, holds it up to ``found``, and is
    fed from ``start`` on."""

    source: TopicPartition
    recorded: int
    found: int
    start: int

    def __str__(self) -> str:
        stands = "has no mark" if self.found == NO_OFFSET else f"stands at {self.found}"
        return f"{self.source} {stands}, stood at {self.recorded}, and is read from {self.start}"


def gaps(
    recorded: Mapping[TopicPartition, int],
    found: Mapping[TopicPartition, int],
    starts: Mapping[TopicPartition, int],
) -> list[Gap]:
    """The lanes whose changes between mark and start would never come again.

    ``starts`` has the partitions that are read here, each with the offset that was read first;
    another member checks its own lanes. What is read again from its mark on has no gap.
    """
    out = []
    for source in sorted(recorded.keys() & starts.keys()):
        gap = Gap(source, recorded[source], found.get(source, NO_OFFSET), starts[source])
        if gap.found < gap.recorded and gap.found + 1 < gap.start:
            out.append(gap)
    return out


def ways_out(pipeline: str, target: str, gap: Gap | None = None) -> str:
    """The commands that put such a target right, for the end of a message."""
    rebuild = f"`binlogd tables rebuild {target}` reads the whole table again"
    if gap is None:
        return rebuild
    source, at = gap.source, gap.found + 1
    place = f"--topic {source.topic} --partition {source.partition} --to offset --at {at}"
    reset = f"`binlogd offsets reset --pipeline {pipeline} --table {target} {place}`"
    return f"{reset} applies them again where the log still has them, {rebuild}"
