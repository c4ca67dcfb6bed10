"""Port of a store of positions, and how the records of several stores become one.

Stores are of two strengths. ``file``, ``kafka-topic`` and ``memory`` keep all that a snapshot
says; ``kafka-commit`` keeps the frontiers alone, as the group's commit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Protocol

from offsets.position import TopicPartition
from offsets.snapshot import Snapshot, SpillMark


class StoreError(Exception):
    """Positions can't be kept or read: one line that names the store."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a store holds: a snapshot or none, and what is damaged in it, one line each."""

    snapshot: Snapshot | None
    damage: tuple[str, ...] = ()


class OffsetStore(Protocol):
    """Where one pipeline's positions outlive its process. Configured by its constructor.

    Any thread may call, several at once: an instance is its own lock. ``start`` comes first,
    ``stop`` last.
    """

    @property
    def name(self) -> str:
        """As the configuration says it; every error begins with it."""
        ...

    def start(self) -> None:
        """Open it. Afterwards ``get`` knows what was set before. Raises StoreError."""
        ...

    def get(self) -> Loaded:
        """All that is recorded, by any run. Raises StoreError, also when not started."""
        ...

    def set(self, batch: Snapshot) -> Future[None]:
        """Record a batch; the future is done once it is as durable as the store can make it.

        Partitions and targets that the batch names are replaced, others stay. Batches are kept in
        the order of the calls, and the future is done in bounded time. It fails with StoreError,
        also when the store is not started or has stopped: then nothing is recorded or, where the
        store says so, a part whose every entry is true by itself.
        """
        ...

    def stop(self) -> None:
        """Finish or fail the sets under way, then close. A second call does nothing."""
        ...


def merged(held: Snapshot | None, batch: Snapshot) -> Snapshot:
    """A batch laid over what is held. Of another pipeline or group nothing is carried over."""
    if held is None or (held.pipeline, held.group) != (batch.pipeline, batch.group):
        return batch
    return replace(
        batch,
        topic_ids={**held.topic_ids, **batch.topic_ids},
        partitions={**held.partitions, **batch.partitions},
        targets={**held.targets, **batch.targets},
    )


def restricted(snapshot: Snapshot, owned: Collection[TopicPartition]) -> Snapshot:
    """A snapshot without other members' partitions: in a shared store they write those."""
    mine = {source: state for source, state in snapshot.partitions.items() if source in owned}
    return replace(snapshot, partitions=mine)


def combined(found: Iterable[Snapshot]) -> Snapshot | None:
    """What several stores hold, an earlier one before a later one.

    Offsets of a topic mean nothing beside those of another topic of the same name, made before or
    after: a later store counts only where its topic's id is the first one's.
    """
    whole: Snapshot | None = None
    for other in found:
        if whole is None:
            whole = other
            continue
        known = whole.topic_ids
        apart = {t for t, i in other.topic_ids.items() if known.get(t, i) != i}
        partitions = {s: state for s, state in other.partitions.items() if s.topic not in apart}
        targets = {} if apart else other.targets
        whole = replace(
            whole,
            topic_ids={**other.topic_ids, **known},
            partitions={**partitions, **whole.partitions},
            targets={**targets, **whole.targets},
            spills={**other.spills, **whole.spills},
        )
    return whole


# Frontiers that the group's commit may have: below what one member keeps in a spill on its disk.


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
