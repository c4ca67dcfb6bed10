"""Reads stretches of the log again, outside the group, when a record's bytes are no longer in
memory."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from itertools import filterfalse
from typing import Any

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as KafkaPartition

from offsets.position import LogEpoch, TopicPartition
from offsets.recovery import PositionError
from sources.base.port import LogGone, LogRecord, LogUnreadable, NotAnswered
from sources.kafka.admin import Admin
from sources.kafka.answers import AWAY, missing_right, said_by
from sources.kafka.settings import connection_settings

SILENCE_S = 10.0
"""The limit for the broker to send something. The records are there already, so this is long."""

QUEUED_KB = 16_384
"""Kilobytes that the client of one read fetches ahead. Several reads go on beside each other, so
the client's own 64 MB each would be much; much less would have a read wait for the broker."""


class LogReader:
    """Reads one pipeline's logs. Any thread: each read has a consumer of its own."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        """``settings`` are the pipeline's of Kafka."""
        self._settings = connection_settings(settings)
        isolation = settings.get("isolation.level", "read_committed")
        self._isolation = {"isolation.level": isolation}

    def read(self, source: TopicPartition, first: int, last: int) -> Iterator[LogRecord]:
        """The existing records from ``first`` to ``last``. Raises LogUnreadable, LogGone.

        Compaction may have removed some. If the log begins above ``first``, that is LogGone.
        """
        try:
            consumer = Consumer(
                {
                    **self._settings,
                    **self._isolation,
                    "group.id": "binlogd-reads-again",  # never joined, but the client requires one
                    "enable.auto.commit": False,
                    "auto.offset.reset": "error",
                    "enable.partition.eof": True,
                    "fetch.wait.max.ms": 100,
                    "queued.max.messages.kbytes": QUEUED_KB,
                }
            )
        except KafkaException as error:
            raise LogUnreadable(error.args[0].str()) from error
        try:
            yield from self._read(consumer, source, first, last)
        except KafkaException as error:
            raise LogUnreadable(f"{source}: {said_by(error)}") from error
        finally:
            consumer.close()

    def record(self, source: TopicPartition, offset: int) -> LogRecord | None:
        """One record, None if the log does not hold it any more. Raises LogUnreadable."""
        try:
            return next(self.read(source, offset, offset), None)
        except LogGone:
            return None

    def _read(
        self, consumer: Consumer, source: TopicPartition, first: int, last: int
    ) -> Iterator[LogRecord]:
        place = KafkaPartition(source.topic, source.partition, first)
        low, _ = consumer.get_watermark_offsets(place, SILENCE_S)
        if low > first:
            raise LogGone(f"{source}: {first}..{last} is needed, the log begins at {low}")
        consumer.assign([place])
        heard = time.monotonic()
        while True:
            # The first one is waited for, and not until there are as many as may come at once.
            came = consumer.consume(1, 0.2)
            came += consumer.consume(1000, 0) if came else []
            messages = [*filterfalse(_of_a_group, came)]
            for message in messages:
                error = message.error()
                if error is not None:
                    if error.code() == KafkaError._PARTITION_EOF:
                        return
                    said = f"{error.str()}{missing_right(error)}"
                    raise LogUnreadable(f"{source}: {said}")
                record = _record(message)
                if record.offset > last:
                    return
                yield record
                if record.offset == last:
                    return
            if messages:
                heard = time.monotonic()
            elif time.monotonic() - heard > SILENCE_S:
                raise LogUnreadable(f"{source}: nothing came within {SILENCE_S:g} s")


class KafkaTopicLog:
    """See ``TopicLog``."""

    def __init__(self, settings: Mapping[str, Any], topic: str) -> None:
        """``settings`` are those of ``[kafka]``."""
        self._settings = settings
        self._topic = topic
        self._admin: Admin | None = None

    @property
    def topic(self) -> str:
        """See ``TopicLog``."""
        return self._topic

    def reach(self) -> None:
        """See ``TopicLog``."""
        self.questions().reach()

    def describe(self) -> tuple[str, list[TopicPartition]]:
        """See ``TopicLog``."""
        return self.questions().described([self._topic])[self._topic]

    def questions(self) -> Admin:
        """See ``TopicLog``."""
        if self._admin is None:
            self._admin = Admin(self._settings)
        return self._admin

    def reader(self) -> LogReader:
        """See ``TopicLog``."""
        return LogReader({**self._settings, "isolation.level": "read_committed"})


def _of_a_group(message: Message) -> bool:
    """An error about the group that no read joins: the client asks for it all the same, and a user
    may read topics without it."""
    error = message.error()
    return error is not None and error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED


def _record(message: Message) -> LogRecord:
    offset = message.offset()
    assert offset is not None
    kind, time_ms = message.timestamp()
    return LogRecord(
        offset=offset,
        key=_bytes(message.key()),
        value=_bytes(message.value()),
        headers=_headers(message),
        time_ms=None if kind == TIMESTAMP_NOT_AVAILABLE else time_ms,
    )


def _headers(message: Message) -> tuple[tuple[str, bytes | None], ...]:
    pairs: list[Any] = list(message.headers() or ())
    return tuple((name, _bytes(value)) for name, value in pairs)


def _bytes(value: Any) -> bytes | None:
    return value.encode() if isinstance(value, str) else value


# Checks that the log below a position is still the one that was read.


def check_logs(
    settings: Mapping[str, Any], known: Mapping[TopicPartition, LogEpoch], timeout_s: float
) -> None:
    """Raises PositionError if the log below its position is another one.

    Raises NotAnswered, KafkaException or TimeoutError if the broker does not answer. Any thread.
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
                raise NotAnswered(f"{source}: {error.str()}", error.code() in AWAY)


def _cut(source: TopicPartition, log: LogEpoch, error: KafkaError) -> str:
    return (
        f"{source}: the log was cut below the recorded position {log.below} and written again (an "
        "unclean leader election, or a broker that lost its disk): what it now holds there was "
        f"not applied ({error.str()})"
    )
