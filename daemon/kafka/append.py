"""Appends records to the topics that they came from, in transactions, each checked before it ends.

Between the last look at a partition and the record's own place there somebody else may write. So
the record is appended first, which gives it its place, then what lies before that is looked at, and
only then is the transaction committed. Until then no reader of committed records sees it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from daemon.kafka.settings import connection_settings
from daemon.source.port import LogRecord
from offsets.position import TopicPartition

TRANSACTION_S = 60.0
"""For one transaction: readers of the partition wait for it, so not longer; the check reads what
came within seconds."""

LARGEST = 1_000_000_000
"""Bytes of a record, for the client: what a topic takes, its broker decides."""

ANY_PARTITION = -1
"""As librdkafka calls it."""

Header = tuple[str, str | bytes | None]


class AppendFailed(Exception):
    """It was not appended: one line."""


class OutcomeUnknown(AppendFailed):
    """It may have been appended or not, the broker did not say. The log tells, later."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"{reason}: whether the records were appended is not known; the next run finds out"
        )


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A record for a partition; without a number, for any of the topic's."""

    topic: str
    partition: int | None
    key: bytes | None
    value: bytes | None
    headers: Sequence[Header]

    @classmethod
    def of(cls, source: TopicPartition, record: LogRecord, headers: Sequence[Header]) -> Outgoing:
        """A record as the log had it, with these headers."""
        return cls(source.topic, source.partition, record.key, record.value, headers)


class Appender:
    """One at a time for each id: whoever comes later puts an earlier one out."""

    def __init__(self, settings: Mapping[str, Any], transactional_id: str) -> None:
        """Waits for the end of what an earlier one left. ``settings`` are the pipeline's of Kafka.

        Raises AppendFailed.
        """
        try:
            self._producer = Producer(
                {
                    **connection_settings(settings),
                    "transactional.id": transactional_id,
                    "transaction.timeout.ms": int(TRANSACTION_S * 1000),
                    "message.timeout.ms": int(TRANSACTION_S * 1000),
                    "message.max.bytes": LARGEST,
                    "linger.ms": 0,
                }
            )
            self._producer.init_transactions(TRANSACTION_S)
        except KafkaException as error:
            raise AppendFailed(f"no transaction can be begun: {_said(error)}") from error

    def append(
        self,
        records: Sequence[Outgoing],
        check: Callable[[Sequence[int]], bool],
        marks: Callable[[Sequence[int]], Sequence[Outgoing]],
    ) -> list[int] | None:
        """Append all, or none; give their offsets, None where ``check`` said no.

        ``check`` is given the offsets that they will have; ``marks`` gives more that is to be
        written with them. Raises AppendFailed, OutcomeUnknown, and what ``check`` raises.
        """
        try:
            self._producer.begin_transaction()
        except KafkaException as error:
            raise AppendFailed(_said(error)) from error
        try:
            offsets = self._send(records)
            good = check(offsets)
            if good:
                self._send(marks(offsets))
        except BaseException:
            self._abort()
            raise
        if not good:
            self._abort()
            return None
        self._commit()
        return offsets

    def _send(self, records: Sequence[Outgoing]) -> list[int]:
        offsets: dict[int, int] = {}
        errors: list[KafkaError] = []

        def heard(number: int) -> Callable[[KafkaError | None, Message], None]:
            def told(error: KafkaError | None, message: Message) -> None:
                if error is not None:
                    errors.append(error)
                else:
                    offset = message.offset()
                    assert offset is not None
                    offsets[number] = offset

            return told

        try:
            for number, record in enumerate(records):
                place = ANY_PARTITION if record.partition is None else record.partition
                self._producer.produce(
                    record.topic,
                    record.value,
                    record.key,
                    place,
                    headers=list(record.headers),
                    on_delivery=heard(number),
                )
            self._producer.flush(TRANSACTION_S)
        except (KafkaException, BufferError) as error:
            raise AppendFailed(_said(error)) from error
        if errors:
            raise AppendFailed(errors[0].str())
        if len(offsets) < len(records):
            raise AppendFailed(f"no broker confirmed within {TRANSACTION_S:g} s")
        return [offsets[number] for number in range(len(records))]

    def _commit(self) -> None:
        try:
            try:
                self._producer.commit_transaction(TRANSACTION_S)
            except KafkaException as error:
                if not error.args[0].retriable():
                    raise
                self._producer.commit_transaction(TRANSACTION_S)
        except KafkaException as error:
            if error.args[0].txn_requires_abort():
                self._abort()
                raise AppendFailed(_said(error)) from error
            raise OutcomeUnknown(_said(error)) from error

    def _abort(self) -> None:
        """Where this fails the broker does it, when the transaction's time is over."""
        try:
            self._producer.abort_transaction(TRANSACTION_S)
        except KafkaException as error:
            if error.args[0].retriable():
                raise AppendFailed(f"a transaction can't be ended: {_said(error)}") from error


def _said(error: Exception) -> str:
    return str(error.args[0].str()) if isinstance(error, KafkaException) else str(error)
