"""The topics of jobs on a real broker."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from structlog.testing import capture_logs

from actors.runtime.backoff import BackOff
from demo.broker import DevBroker
from offsets.position import TopicPartition
from sources.base.port import NotAnswered, TopicMissing
from sources.kafka.admin import Admin
from sources.kafka.job_topics import NotificationTopic
from sources.kafka.log_reader import KafkaTopicLog

T = TypeVar("T")


def settings(broker: DevBroker) -> dict[str, str]:
    return {"bootstrap.servers": broker.bootstrap}


def patiently(ask: Callable[[], T]) -> T:
    return BackOff(30.0).call(ask, (NotAnswered, TopicMissing), lambda error, attempt: None)


def test_a_topic_is_described(store_broker: DevBroker) -> None:
    """By its id, which a topic that is recreated does not have, and its partitions."""
    name = f"signals-{uuid.uuid4().hex[:8]}"
    admin = AdminClient(settings(store_broker))
    log = KafkaTopicLog(settings(store_broker), name)
    with pytest.raises(TopicMissing, match=name):
        log.describe()
    admin.create_topics([NewTopic(name, 2, 1)])[name].result(20)
    # The answer is the controller's: the partitions get their leaders a moment later.
    id_, sources = patiently(log.describe)
    assert sources == [TopicPartition(name, 0), TopicPartition(name, 1)]
    assert log.describe()[0] == id_
    ends = patiently(lambda: log.questions().committed_ends(sources))
    assert ends == dict.fromkeys(sources, 0)


def test_a_notification_arrives(store_broker: DevBroker) -> None:
    """As JSON, with the pipeline as its key."""
    name = f"notifications-{uuid.uuid4().hex[:8]}"
    admin = AdminClient(settings(store_broker))
    admin.create_topics([NewTopic(name, 1, 1)])[name].result(20)
    topic = NotificationTopic(settings(store_broker), name)
    topic.send("shop", {"type": "STARTED", "id": "ä"})
    topic.close()
    (record,) = (
        KafkaTopicLog(settings(store_broker), name).reader().read(TopicPartition(name, 0), 0, 0)
    )
    assert (record.key, record.value) == (b"shop", '{"type": "STARTED", "id": "ä"}'.encode())


def test_a_broker_that_is_away_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither raises nor waits for ever."""
    nowhere = {"bootstrap.servers": "127.0.0.1:1"}
    made = partial(Admin, answer_s=0.5)
    monkeypatch.setattr("sources.kafka.log_reader.Admin", made)
    monkeypatch.setattr("sources.kafka.job_topics.FLUSH_S", 0.2)
    with pytest.raises(NotAnswered):
        KafkaTopicLog(nowhere, "signals").describe()
    topic = NotificationTopic(nowhere, "notifications")
    with capture_logs() as said:
        topic.send("shop", {})
        topic.close()
    assert [event["event"] for event in said] == ["notification_not_sent"]
