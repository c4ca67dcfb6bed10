"""How far the log goes behind the range, in the partitions that matter for a target. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from daemon.cli.counts.against import Against
from daemon.cli.counts.bounds import LATE_MS, Bounds
from daemon.cli.counts.scan import Scanned
from offsets.position import TopicPartition, is_job_lane
from offsets.snapshot import Snapshot


def waits_for(target: str, scanned: Scanned, recorded: Snapshot) -> list[TopicPartition]:
    """The partitions that have no record of after the range."""
    return [each.source for each in _that_matter(target, scanned, recorded) if not each.passed]


def with_said(scanned: Scanned, recorded: Snapshot, against: Against, to_ms: int) -> Scanned:
    """With what is said beside the log. ``to_ms``: where the range ends."""

    def settled(target: str) -> bool:
        all_ = _that_matter(target, scanned, recorded)
        return all(each.passed and (each.latest_ms or 0) > to_ms + LATE_MS for each in all_)

    says = against.said(settled)
    found = replace(scanned.found, cells=against.cells(scanned.found.cells, says))
    return replace(scanned, found=found, says=says, nothing=against.nothing)


def _that_matter(target: str, scanned: Scanned, recorded: Snapshot) -> Iterator[Bounds]:
    """A target's lanes, all partitions where it has none, and those with ends of transactions."""
    mark = recorded.targets.get(target)
    lanes = set() if mark is None else {lane for lane in mark.hwms if not is_job_lane(lane)}
    lanes |= {TopicPartition(*key[1:3]) for key in scanned.found.cells if key.target == target}
    matter = lanes | scanned.found.ends
    return (each for each in scanned.ranges if not lanes or each.source in matter)
