"""A pipeline between two Kafkas."""

from __future__ import annotations

import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from daemon.config.config import Config
from daemon.operations.move.move import LogMove
from daemon.state.offset_file import OffsetFile
from demo.broker import DevBroker
from offsets.position import LogEpoch, TopicPartition
from offsets.recovery import Watermarks
from offsets.snapshot import PartitionState, Snapshot, TargetMark
from sources.base.port import NotAnswered
from sources.kafka.cluster import Groups
from sources.opening import open_source

MESSAGES = 20


class World:
    """A pipeline with 20 messages in the old Kafka, all of them applied."""

    def __init__(self, folder: Path, before: DevBroker, after: DevBroker) -> None:
        self.topic = f"shop-{uuid.uuid4().hex[:8]}"
        self.source = TopicPartition(self.topic, 0)
        self.state, self.old, self.new = folder / "state", before.bootstrap, after.bootstrap
        self.state.mkdir()
        self.section: dict[str, Any] = {
            "topics": [self.topic], "format": "canal-json",
            "target": "copy.{database}.{table}", "offset_stores": ["file", "kafka-commit"],
        }  # fmt: skip
        self.notes: list[str] = []
        self.signals = ""
        make(self.old, self.topic)
        produce(self.old, self.topic, MESSAGES)
        self.snapshot = Snapshot(
            "p", "binlogd-p", open_source(self.config(self.old), "p").topic_ids(),
            {self.source: PartitionState(MESSAGES, MESSAGES, LogEpoch(0, MESSAGES))},
            {"copy.s.t": TargetMark("77", {self.source: 12})},
        )  # fmt: skip
        self.save()

    def save(self, **changed: Any) -> None:
        OffsetFile(self.state, "p").save(replace(self.snapshot, **changed))

    def config(self, bootstrap: str) -> Config:
        return Config.model_validate({
            "kafka": {"bootstrap.servers": bootstrap}, "daemon": {"state_dir": self.state},
            "sink": {"copy": {"kind": "sqlite", "path": "copy.db"}},
            "pipeline": {"p": self.section}, "jobs": {"signals_topic": self.signals},
        })  # fmt: skip

    def move(self) -> LogMove:
        return LogMove(self.config(self.old), self.config(self.new), self.notes.append)

    def refusals(self) -> list[str]:
        return self.move().look().refusals

    def moves(self) -> list[str]:
        """Do it; what was done."""
        move = self.move()
        found = move.look()
        assert not found.refusals
        return list(move.carry_out(found))

    def recorded(self) -> Snapshot:
        found = OffsetFile(self.state, "p").load().snapshot
        assert found is not None
        return found

    def log(self) -> Watermarks:
        """As the new Kafka has it."""
        questions = open_source(self.config(self.new), "p").questions()
        return questions.watermarks([self.source])[self.source]


def in_use(broker: DevBroker) -> None:
    """Its groups' topic is there, whose making takes long on a busy machine."""
    groups = Groups({"bootstrap.servers": broker.bootstrap}, 60.0)
    while True:
        try:
            assert groups.members("anybody") == []
            return
        except NotAnswered:
            continue


def make(bootstrap: str, topic: str, partitions: int = 1, **settings: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, partitions, 1, config=settings)])[topic].result(30)


def produce(
    bootstrap: str, topic: str, count: int, value: bytes | None = b"x", then: str = ""
) -> None:
    """``then``: what becomes of the transaction; none without."""
    transactional = {"transactional.id": topic, "transaction.timeout.ms": 5000} if then else {}
    producer = Producer({"bootstrap.servers": bootstrap, **transactional})
    if then:
        producer.init_transactions(30)
        producer.begin_transaction()
    for _ in range(count):
        producer.produce(topic, value, partition=0)
    assert producer.flush(30) == 0
    if then == "commit":
        producer.commit_transaction(30)
    elif then == "abort":
        producer.abort_transaction(30)
