"""A workload in its topic: all of it, or at its rate."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest
from confluent_kafka import Consumer, TopicPartition

from bench.compare.messages import messages
from bench.compare.topic import LiveProducer, end_offset, fill
from bench.compare.workloads import workloads
from demo.broker import DevBroker
from demo.produce import create_topic


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevBroker]:
    """A real Kafka."""
    with DevBroker(tmp_path_factory.mktemp("broker")) as started:
        yield started


def read(broker: DevBroker, topic: str, count: int) -> list[tuple[int, bytes]]:
    """So many messages of partition 0 from its start: when each was sent (ms), and its value."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": f"read-{topic}"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[tuple[int, bytes]] = []
    while len(found) < count:
        for message in consumer.consume(count, 10.0):
            value = message.value()
            assert value is not None
            found.append((message.timestamp()[1], value))
    consumer.close()
    return found


def test_a_topic_holds_the_stream_in_order(broker: DevBroker) -> None:
    """The n-th message has offset n: so an offset says how much of the stream is applied."""
    workload = workloads(0.001)["wide-multi"]
    assert fill(broker.bootstrap, workload) == workload.messages
    found = read(broker, workload.topic, workload.messages)
    assert [value for _, value in found] == list(messages(workload))


def test_a_live_workload_is_sent_at_its_rate(broker: DevBroker) -> None:
    """A second's worth takes a second, not less; each row has the time when it was sent."""
    workload = replace(workloads(0.1)["fresh"], changes=200, per_second=200)
    create_topic(broker.bootstrap, "live")
    producer = LiveProducer(broker.bootstrap, "live", workload)
    begun = time.time_ns() // 1_000_000
    producer.start()
    found = read(broker, "live", workload.messages)
    producer.stop()
    sent = [int(json.loads(value)["data"][0]["sent"]) for _, value in found]
    assert sent == sorted(sent)
    assert sent[-1] - begun >= 900
    assert all(at >= told for (at, _), told in zip(found, sent, strict=True))


def test_one_that_is_stopped_sends_no_more(broker: DevBroker) -> None:
    """Nor does one that was never started."""
    workload = replace(workloads(0.1)["fresh"], changes=5_000, per_second=1)
    create_topic(broker.bootstrap, "stopped")
    producer = LiveProducer(broker.bootstrap, "stopped", workload)
    producer.start()
    producer.stop()
    assert end_offset(broker.bootstrap, "stopped") < 100
    LiveProducer(broker.bootstrap, "stopped", workload).stop()
