"""Refuses to replay records whose keys have another partition since partitions were added."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from changes.model.partitioners import first_elsewhere
from daemon.operations.replay.conflicts import Candidate


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
