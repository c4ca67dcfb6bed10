"""Records whose keys have another partition since partitions were added: not to be replayed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from changes.model.partitioners import first_elsewhere
from daemon.operations.replay.conflicts import Candidate
from offsets.position import TopicPartition


def refuse_moved(
    candidates: Iterable[Candidate], partitioner: str, counts: Mapping[str, int]
) -> None:
    """Refuse candidates whose keys have other partitions by now: they would be appended to the
    former ones, and their tables refused. ``counts``: of each topic how many partitions it has."""
    for candidate in candidates:
        source, key, count = candidate.source, candidate.record.key, counts[candidate.source.topic]
        found = None
        if key is not None:
            found = first_elsewhere(partitioner, (key,), count, source.partition)
        if found is not None:
            candidate.problems.append(
                f"partitions were added since: by {partitioner} its key belongs into partition "
                f"{found[1]} of {count} now. `binlogd tables load` has the row's present values"
            )


def doubt_added(
    candidates: Iterable[Candidate], firsts: Mapping[TopicPartition, int | None]
) -> None:
    """Doubt candidates that are older than a partition, where nobody knows the partitioner: a later
    change of a row may be in that partition, where nothing looks for it.

    ``firsts``: of each partition that has records the first one's time, in Unix milliseconds.
    """
    for candidate in candidates:
        source, at = candidate.source, candidate.record.time_ms
        for other, first in firsts.items():
            if other.topic != source.topic or other == source:
                continue
            if at is None or first is None or first > at:
                candidate.doubt(
                    f"{other} has no record as old as it: if that partition was added since, the "
                    "row may have changed there, and without a partitioner nobody can tell"
                )
                break
