"""Appends records to their topics in transactions; each is checked before its commit.

Another producer may write between the last look at a partition and the append. So the record is
appended first, which fixes its offset. Then the records before that offset are checked, and only
then the transaction is committed. Until then no reader of committed records sees it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from sources.base.port import AppendFailed, OutcomeUnknown, Outgoing
from sources.kafka.answers import missing_right, said_by
from sources.kafka.settings import connection_settings

TRANSACTION_S = 60.0
"""The limit for one transaction. Readers of the partition wait for it, so not longer; the check
takes seconds."""

LARGEST = 1_000_000_000
"""Bytes of a record, for the client. The real limit is the topic's, and the broker enforces it."""

ANY_PARTITION = -1
"""librdkafka's number for "any partition"."""


class KafkaAppender:
    """See ``Appender``. Kafka fences an earlier producer of the same ``transactional_id``."""

    def __init__(self, settings: Mapping[str, Any], transactional_id: str) -> None:
        """Waits until an earlier appender's open transaction has ended. ``settings`` are the
        pipeline's of Kafka.

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
        """See ``Appender``."""
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

        def on_delivery(number: int) -> Callable[[KafkaError | None, Message], None]:
            def delivered(error: KafkaError | None, message: Message) -> None:
                if error is not None:
                    errors.append(error)
                else:
                    offset = message.offset()
                    assert offset is not None
                    offsets[number] = offset

            return delivered

        try:
            for number, record in enumerate(records):
                place = ANY_PARTITION if record.partition is None else record.partition
                self._producer.produce(
                    record.topic,
                    record.value,
                    record.key,
                    place,
                    headers=list(record.headers),
                    on_delivery=on_delivery(number),
                )
            self._producer.flush(TRANSACTION_S)
        except (KafkaException, BufferError) as error:
            raise AppendFailed(_said(error)) from error
        if errors:
            raise AppendFailed(f"{errors[0].str()}{missing_right(errors[0], 'WRITE')}")
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
        """If this fails, the broker aborts the transaction when its time is over."""
        try:
            self._producer.abort_transaction(TRANSACTION_S)
        except KafkaException as error:
            if error.args[0].retriable():
                raise AppendFailed(f"a transaction can't be ended: {_said(error)}") from error


def _said(error: Exception) -> str:
    return said_by(error, "WRITE")
