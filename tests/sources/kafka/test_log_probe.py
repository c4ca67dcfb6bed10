"""What the broker keeps: where logs begin, for how long; what is left of it in the status."""

from __future__ import annotations

import uuid

import pytest
from confluent_kafka import Producer
from confluent_kafka import TopicPartition as KafkaPartition
from confluent_kafka.admin import AdminClient, NewTopic

from actors.contract.figures import CommitterFigures, LaneFigures, PartitionFigures
from daemon.admin.status.status_parts import partitions_of
from demo.broker import DevBroker
from offsets.position import TopicPartition
from sources.base.log_figures import KeptRecords, LogFigures
from sources.base.port import NotAnswered
from sources.base.topic_selection import TopicSelection
from sources.kafka.admin import Admin
from sources.kafka.log_probe import KafkaLogProbe

P0 = TopicPartition("t", 0)


def partition(kept: KeptRecords, *, frontier: int, age_s: float) -> dict[str, object]:
    """A partition's figures where the log ends at 9 and the frontier's message has an age."""
    lanes = () if frontier == 9 else (LaneFigures("lake.s.t", frontier, int(-age_s * 1000)),)
    figures = PartitionFigures(frontier, 9, frontier, None, lanes)
    committer = CommitterFigures({P0: figures}, {}, 0, 0, None, None)
    (found,) = partitions_of(LogFigures({P0: 9}, None, None, kept), committer, 0)
    return {k: found[k] for k in ("log_start", "retention_seconds", "retention_left_seconds")}


def test_what_is_left_is_the_retention_without_the_age_of_the_oldest() -> None:
    """Below zero where the broker may have removed it; nothing where nothing is at risk."""
    kept = KeptRecords({P0: 2}, {"t": 3600.0})
    shown = [partition(kept, frontier=f, age_s=a) for f, a in ((5, 600.0), (5, 4000.0), (9, 0.0))]
    assert [each["retention_left_seconds"] for each in shown] == [3000.0, -400.0, None]
    assert (shown[0]["log_start"], shown[0]["retention_seconds"]) == (2, 3600.0)


def test_a_topic_that_is_kept_for_ever_has_no_end() -> None:
    assert set(partition(KeptRecords({P0: 0}), frontier=5, age_s=9e9).values()) == {0, None}


@pytest.mark.integration
def test_a_broker_says_what_it_keeps(store_broker: DevBroker) -> None:
    """By time, by compaction alone, for ever; a log that was cut begins later."""
    names = [f"keep-{n}-{uuid.uuid4().hex[:6]}" for n in range(3)]
    settings = [{"retention.ms": "60000"}, {"cleanup.policy": "compact"}, {"retention.ms": "-1"}]
    admin = AdminClient({"bootstrap.servers": store_broker.bootstrap})
    new = [NewTopic(n, 1, 1, config=c) for n, c in zip(names, settings, strict=True)]
    for answer in admin.create_topics(new).values():
        answer.result(20)
    producer = Producer({"bootstrap.servers": store_broker.bootstrap})
    for _ in range(5):
        producer.produce(names[0], b"x")
    assert producer.flush(30) == 0
    admin.delete_records([KafkaPartition(names[0], 0, 3)])[KafkaPartition(names[0], 0)].result(20)
    kept = KafkaLogProbe(
        {"bootstrap.servers": store_broker.bootstrap}, TopicSelection((*names, "none"))
    ).kept()
    assert kept.seconds == {names[0]: 60.0}
    assert kept.starts == {TopicPartition(n, 0): 3 if n == names[0] else 0 for n in names}


@pytest.mark.integration
def test_a_topic_that_is_not_there_is_no_topic_without_partitions(store_broker: DevBroker) -> None:
    """A load whose log is gone would end at once. What only watches goes on with the others."""
    admin = Admin({"bootstrap.servers": store_broker.bootstrap})
    with pytest.raises(NotAnswered, match="topic 'none': is not there") as told:
        admin.partitions(["none"])
    assert not told.value.away
    assert admin.partitions(["none"], missing_too=True) == []
