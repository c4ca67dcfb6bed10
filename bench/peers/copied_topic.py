"""A copy of a workload's topic, made for a contestant that can't take the messages as they are."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from bench.compare.job import Job

Convert = Callable[[bytes], Iterable[tuple[bytes | None, bytes]]]
"""The messages that one message becomes: key and value of each."""

_ANSWER_WITHIN_S = 30.0
"""For the broker, which answers in milliseconds: that long only where it is gone."""


class CopyFailed(Exception):
    """The messages could not be read or written, in one line."""


@contextmanager
def copied_topic(job: Job, convert: Convert) -> Iterator[tuple[str, int]]:
    """Make a topic of what the job's messages become; gives its name and its number of messages.

    It has one partition and is deleted at the end. Raises CopyFailed.
    """
    name = f"{job.topic}-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": job.bootstrap})
    admin.create_topics([NewTopic(name, 1, 1)])[name].result(_ANSWER_WITHIN_S)
    try:
        yield name, _copy(job, name, convert)
    finally:
        admin.delete_topics([name])[name].result(_ANSWER_WITHIN_S)


def _copy(job: Job, name: str, convert: Convert) -> int:
    failed: list[KafkaError] = []

    def delivered(error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            failed.append(error)

    producer = Producer(
        {
            "bootstrap.servers": job.bootstrap,
            "linger.ms": 20,
            "batch.size": 1 << 20,
            "queue.buffering.max.messages": 1_000_000,
        }
    )
    count = 0
    for value in _values(job):
        for key, converted in convert(value):
            _produce(producer, name, key, converted, delivered)
            count += 1
    left = producer.flush(_ANSWER_WITHIN_S)
    if failed or left:
        raise CopyFailed(f"{len(failed)} messages of {name} refused, {left} without an answer")
    return count


def _produce(
    producer: Producer,
    topic: str,
    key: bytes | None,
    value: bytes,
    delivered: Callable[[KafkaError | None, Message], None],
) -> None:
    while True:
        try:
            producer.produce(topic, value, key, on_delivery=delivered)
            return
        except BufferError:
            producer.poll(1.0)


def _values(job: Job) -> Iterator[bytes]:
    """The messages of the job, from the first on."""
    consumer = Consumer(
        {"bootstrap.servers": job.bootstrap, "group.id": "copy", "enable.auto.commit": False}
    )
    try:
        consumer.assign([TopicPartition(job.topic, 0, 0)])
        reached = 0
        while reached < job.end:
            messages = consumer.consume(10_000, timeout=_ANSWER_WITHIN_S)
            if not messages:
                raise CopyFailed(f"{job.topic} gave no message in {_ANSWER_WITHIN_S:.0f} s")
            for message in messages:
                value, offset = message.value(), message.offset()
                if message.error() or value is None or offset is None:
                    raise CopyFailed(f"{job.topic}: {message.error() or 'a message of nothing'}")
                if offset < job.end:
                    yield value
                reached = offset + 1
    finally:
        consumer.close()
