"""Frontiers that the group's commit may have: below what one member keeps in a spill on its disk.

The next member that gets the partition begins at the group's commit. With a commit above the
spilled messages it would move the target's mark past them, and the release would drop them as
replays. So it reads them as well, and the marks decide which of both is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from offsets.position import TopicPartition
from offsets.snapshot import SpillMark


def below_spills(
    frontiers: Mapping[TopicPartition, int],
    confirmed: Mapping[TopicPartition, int | None],
    spills: Iterable[SpillMark],
) -> dict[TopicPartition, int]:
    """Frontiers for the group: each at most at the first message that is spilled, but never below
    what the group has confirmed, which another member may have come to."""
    firsts: dict[TopicPartition, int] = {}
    for spill in spills:
        for source, (first, _) in spill.lanes.items():
            firsts[source] = min(first, firsts.get(source, first))
    held: dict[TopicPartition, int] = {}
    for source, frontier in frontiers.items():
        floor = confirmed.get(source)
        first = max(firsts.get(source, frontier), -1 if floor is None else floor)
        held[source] = min(frontier, first)
    return held
