"""Kafka's adapter of ``Sender``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from settings.counted import counted
from sources.base.port import Outgoing
from sources.base.topics import NotSent
from sources.kafka.append import ANY_PARTITION, LARGEST
from sources.kafka.settings import connection_settings

SEND_WITHIN_S = 60.0
"""How long the client tries one record. A broker answers in milliseconds; one that starts needs
seconds."""

_EVERY = 1000
"""Records between two looks at the reports of earlier ones."""


class KafkaSender:
    """See ``Sender``."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        """``settings`` are those of ``[kafka]``. Raises NotSent."""
        try:
            self._producer = Producer(
                {
                    **connection_settings(settings),
                    # In order and without doubles, whatever is sent again.
                    "enable.idempotence": True,
                    # Keys go where Java's clients put them, which is what ``partitioned_by =
                    # "key"`` expects.
                    "partitioner": "murmur2_random",
                    "message.timeout.ms": int(SEND_WITHIN_S * 1000),
                    "message.max.bytes": LARGEST,
                    "linger.ms": 20,
                    "compression.type": "lz4",
                    "batch.size": 1_000_000,
                    "queue.buffering.max.messages": 200_000,
                }
            )
        except KafkaException as error:
            said = f"the Kafka client refuses: {error.args[0].str()}"
            raise NotSent(said, 0) from error
        self._arrived = 0
        self._failed: str | None = None

    def send(
        self, records: Iterable[Outgoing], arrived: Callable[[int, int], None] = lambda *_: None
    ) -> int:
        """See ``Sender``."""

        def report(number: int) -> Callable[[KafkaError | None, Message], None]:
            def delivered(error: KafkaError | None, message: Message) -> None:
                partition, offset = message.partition(), message.offset()
                if error is None and partition is not None and offset is not None:
                    self._arrived += 1
                    arrived(partition, offset)
                elif self._failed is None:
                    why = "the broker gave it no offset" if error is None else error.str()
                    self._failed = f"record {number}: {why}"

            return delivered

        for number, record in enumerate(records, 1):
            self._put(record, number, report(number))
            if number % _EVERY == 0:
                self._producer.poll(0)
            if self._failed:
                break
        left = self._producer.flush(SEND_WITHIN_S)
        if left and self._failed is None:
            self._failed = f"{counted(left, 'record')} without an answer within {SEND_WITHIN_S:g} s"
        if self._failed:
            raise NotSent(self._failed, self._arrived)
        return self._arrived

    def _put(
        self, record: Outgoing, number: int, report: Callable[[KafkaError | None, Message], None]
    ) -> None:
        """Queue it; wait for room where the client's queue is full."""
        place = ANY_PARTITION if record.partition is None else record.partition
        headers = list(record.headers)
        while self._failed is None:
            try:
                self._producer.produce(
                    record.topic, record.value, record.key, place,
                    headers=headers, on_delivery=report,
                )  # fmt: skip
                return
            except BufferError:
                self._producer.poll(1.0)
            except KafkaException as error:
                self._failed = f"record {number}: {error.args[0].str()}"
