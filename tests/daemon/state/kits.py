"""One world for each store: how it is made, made again, broken, and what it can promise."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from confluent_kafka.admin import AdminClient, NewTopic

from daemon.state.offset_file import FileStore
from daemon.state.offset_stores import MemoryStore
from offsets.position import LogEpoch, TopicPartition
from offsets.snapshot import PartitionState, Snapshot, TargetMark
from offsets.store import OffsetStore
from sources.base.topic_selection import TopicSelection
from sources.kafka.commit_store import KafkaCommitStore
from sources.kafka.topic_store import KafkaTopicStore

PIPELINE, GROUP = "shop", "g"


class Kit(Protocol):
    """What the contract suite knows of a store beside the interface."""

    topic: str
    whole: bool
    """Keeps all of a snapshot, not the frontiers alone."""
    survives: bool
    """A new instance finds what an old one set."""
    shared: bool
    """A member on another machine sees it."""

    def make(self) -> OffsetStore:
        """One more instance on the same medium, not started."""
        ...

    def make_other(self) -> OffsetStore:
        """The instance of a member on another machine."""
        ...

    def refuse(self, store: OffsetStore) -> Snapshot:
        """Bring about a fault; gives a batch that names partitions 0 and 1 and will fail."""
        ...

    def repair(self, store: OffsetStore) -> None:
        """End the fault, where it is not the batch's own."""
        ...


class MemoryKit:
    whole, survives, shared = True, False, False
    topic = "binlog"

    def make(self) -> OffsetStore:
        return MemoryStore()

    make_other = make

    def refuse(self, store: OffsetStore) -> Snapshot:
        store.stop()  # it has no other fault
        return batch(self.topic, {0: 9, 1: 9})

    def repair(self, store: OffsetStore) -> None:
        store.start()


class FileKit:
    whole, survives, shared = True, True, False
    topic = "binlog"

    def __init__(self, folder: Path) -> None:
        self.here, self.there = folder / "here", folder / "there"
        self.here.mkdir()
        self.there.mkdir()

    def make(self) -> OffsetStore:
        return FileStore(self.here, PIPELINE)

    def make_other(self) -> OffsetStore:
        return FileStore(self.there, PIPELINE)

    def refuse(self, store: OffsetStore) -> Snapshot:
        (self.here / f"{PIPELINE}.offsets.json.new").mkdir()
        return batch(self.topic, {0: 9, 1: 9})

    def repair(self, store: OffsetStore) -> None:
        (self.here / f"{PIPELINE}.offsets.json.new").rmdir()


class CommitKit:
    whole, survives, shared = False, True, True

    def __init__(self, bootstrap: str, timeout_s: float = 30.0) -> None:
        self.settings = {"bootstrap.servers": bootstrap}
        self.timeout_s = timeout_s
        self.group = f"g-{uuid.uuid4().hex[:8]}"
        self.topic = f"binlog-{uuid.uuid4().hex[:8]}"
        admin = AdminClient(self.settings)
        admin.create_topics([NewTopic(self.topic, 10, 1)])[self.topic].result(20)

    def make(self) -> KafkaCommitStore:
        return KafkaCommitStore(
            self.settings, TopicSelection((self.topic,)), PIPELINE, self.group, self.timeout_s
        )

    make_other: Callable[[], KafkaCommitStore] = make

    def refuse(self, store: OffsetStore) -> Snapshot:
        found = batch(self.topic, {0: 9, 1: 9})
        gone = TopicPartition("deleted-since", 0)
        partitions = {**found.partitions, gone: PartitionState(9)}
        return Snapshot(PIPELINE, self.group, {}, partitions)

    def repair(self, store: OffsetStore) -> None:
        """It was the batch."""


class TopicKit:
    whole, survives, shared = True, True, True
    topic = "binlog"

    def __init__(self, bootstrap: str, timeout_s: float = 30.0) -> None:
        self.settings = {"bootstrap.servers": bootstrap}
        self.timeout_s = timeout_s
        self.offset_topic = f"offsets-{uuid.uuid4().hex[:8]}"
        self.admin: AdminClient | None = None

    def make(self) -> KafkaTopicStore:
        return KafkaTopicStore(self.settings, self.offset_topic, PIPELINE, GROUP, self.timeout_s)

    make_other: Callable[[], KafkaTopicStore] = make

    def refuse(self, store: OffsetStore) -> Snapshot:
        # More than the client's message.max.bytes: this record alone is refused.
        hwms = {TopicPartition("t" * 200, n): n for n in range(10_000)}
        found = batch(self.topic, {0: 9, 1: 9}, forced="never carried out")
        return Snapshot(
            PIPELINE, GROUP, found.topic_ids, found.partitions,
            {"lake.s.t": TargetMark("v9", hwms)}, found.forced,
        )  # fmt: skip

    def repair(self, store: OffsetStore) -> None:
        """It was the batch."""


def batch(topic: str, frontiers: dict[int, int], forced: str | None = None) -> Snapshot:
    """A batch of frontiers with all that a snapshot has beside them."""
    partitions = {
        TopicPartition(topic, n): PartitionState(at, max(0, at - 1), LogEpoch(3, at))
        for n, at in frontiers.items()
    }
    marks = {
        f"lake.s.t{n}": TargetMark(
            f"v{at}", {TopicPartition(topic, n): at - 1}, rows_may_differ="s.t: n is int" * n
        )
        for n, at in frontiers.items()
    }
    return Snapshot(PIPELINE, GROUP, {topic: "id-1"}, partitions, marks, forced)
