"""A workload in its topic: all of it, or at its rate."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest
from confluent_kafka import Consumer, Message, TopicPartition

from bench.compare.messages import messages, records
from bench.compare.topic import LiveProducer, end_offset, fill
from bench.compare.workloads import workloads
from changes.model.partitioners import first_elsewhere
from demo.broker import DevBroker
from demo.produce import create_topic


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevBroker]:
    """A real Kafka."""
    with DevBroker(tmp_path_factory.mktemp("broker")) as started:
        yield started


def read_all(broker: DevBroker, topic: str, count: int, partition: int = 0) -> list[Message]:
    """So many messages of a partition from its start."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": f"read-{topic}"})
    consumer.assign([TopicPartition(topic, partition, 0)])
    found: list[Message] = []
    while len(found) < count:
        found += consumer.consume(count, 10.0)
    consumer.close()
    return found


def read(broker: DevBroker, topic: str, count: int) -> list[tuple[int, bytes]]:
    """So many messages of partition 0 from its start: when each was sent (ms), and its value."""
    return [(one.timestamp()[1], one.value() or b"") for one in read_all(broker, topic, count)]


def test_a_topic_holds_the_stream_in_order(broker: DevBroker) -> None:
    """The n-th message has offset n: so an offset says how much of the stream is applied."""
    workload = workloads(0.001)["wide-multi"]
    assert fill(broker.bootstrap, workload) == {workload.topic: (workload.messages,)}
    found = read(broker, workload.topic, workload.messages)
    assert [value for _, value in found] == list(messages(workload))


def test_keys_choose_partitions_as_javas_producer_does(broker: DevBroker) -> None:
    """And each partition has its keys' messages in the order of the stream."""
    workload = replace(workloads(0.001)["wide-keyed"], changes=600, partitions=3)
    ends = fill(broker.bootstrap, workload)[workload.topic]
    assert sum(ends) == workload.messages
    assert min(ends) > 0
    wanted = {(record.key, record.value): at for at, record in enumerate(records(workload))}
    for partition, end in enumerate(ends):
        found = read_all(broker, workload.topic, end, partition)
        keys = [message.key() or b"" for message in found]
        assert first_elsewhere("murmur2", keys, len(ends), partition) is None
        order = [wanted[message.key(), message.value() or b""] for message in found]
        assert order == sorted(order)


def test_each_table_may_have_its_topic(broker: DevBroker) -> None:
    """With its own messages, in their order."""
    workload = replace(workloads(0.001)["wide-avro"], changes=80, tables=2)
    ends = fill(broker.bootstrap, workload)
    assert list(ends) == ["wide-avro.bench.t0", "wide-avro.bench.t1"]
    written = list(records(workload))
    for table, (topic, (end,)) in enumerate(ends.items()):
        found = [message.value() for message in read_all(broker, topic, end)]
        assert found == [record.value for record in written if record.table == table]


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
