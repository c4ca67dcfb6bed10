"""Checks that the log below a position is still the one that was read.

The client checks this itself (KIP-320), but only when it learns a leader epoch after it got the
position. The group's consumer knows the epoch before. So a consumer outside the group gets the
position, and its first answer decides: a message or the log's end, or an error that the log was
truncated.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as KafkaPartition

from daemon.kafka.settings import connection_settings
from offsets.log_epochs import LogEpoch
from offsets.position import TopicPartition
from offsets.recovery import PositionError


def check_logs(
    settings: Mapping[str, Any], known: Mapping[TopicPartition, LogEpoch], timeout_s: float
) -> None:
    """Raises PositionError if the log below its position is another one.

    Raises KafkaException or TimeoutError if the broker does not answer. Any thread.
    """
    if not known:
        return
    consumer = Consumer(
        {
            **connection_settings(settings),
            "group.id": "binlogd-checks-logs",  # never joined, but the client requires one
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "enable.partition.eof": True,
            # The end is reported even where open transactions hide it.
            "isolation.level": "read_uncommitted",
            "fetch.wait.max.ms": 50,
            # One batch of messages is more than enough.
            "fetch.message.max.bytes": 1000,
        }
    )
    try:
        consumer.assign(
            [
                KafkaPartition(source.topic, source.partition, log.below, leader_epoch=log.epoch)
                for source, log in known.items()
            ]
        )
        _await_word(consumer, known, time.monotonic() + timeout_s)
    finally:
        consumer.close()


def _await_word(
    consumer: Consumer, known: Mapping[TopicPartition, LogEpoch], deadline: float
) -> None:
    waiting = set(known)
    while waiting:
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        for message in consumer.consume(100, min(left_s, 0.05)):
            topic, partition, error = message.topic(), message.partition(), message.error()
            if topic is None or partition is None:
                continue  # an error of the client as a whole, which goes on by itself
            source = TopicPartition(topic, partition)
            if error is None or error.code() == KafkaError._PARTITION_EOF:
                waiting.discard(source)
            elif error.code() == KafkaError._AUTO_OFFSET_RESET and "truncation" in error.str():
                raise PositionError(_cut(source, known[source], error))
            elif (
                not error.retriable()
            ):  # retention may have deleted records since the log was queried
                raise KafkaException(error)


def _cut(source: TopicPartition, log: LogEpoch, error: KafkaError) -> str:
    return (
        f"{source}: the log was cut below the recorded position {log.below} and written anew (an "
        "unclean leader election, or a broker that lost its disk): what it now holds there was "
        f"not applied ({error.str()})"
    )
