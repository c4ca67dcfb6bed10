"""Turns the client's messages into columns per partition. On the fetcher's thread, at each poll."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import groupby
from typing import Any

import msgspec
from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, KafkaError, Message
from confluent_kafka import TopicPartition as KafkaPartition

from actors.contract.messages import Fetched, SourceState
from changes.formats.engine.format import pack
from offsets.position import EpochSpan, TopicPartition
from sources.kafka.answers import missing_right


def by_source(
    messages: list[Message],
    assigned_before: frozenset[TopicPartition],
    assigned: set[TopicPartition],
) -> Iterable[tuple[TopicPartition, list[Message]]]:
    """Messages by partition. With one partition assigned, before and after the poll, no message is
    inspected."""
    if len(assigned_before) == 1 and assigned_before == assigned:
        (source,) = assigned_before
        return [(source, messages)]
    found: dict[Any, list[Message]] = {}
    for message in messages:
        found.setdefault((message.topic(), message.partition()), []).append(message)
    return [(TopicPartition(*key), mine) for key, mine in found.items()]


def without_errors(
    messages: list[Message], lasting_error: Callable[[Message], str | None]
) -> tuple[list[Message], str | None]:
    """The records, for each partition those before its first lasting error, and the first error.

    An error's value is its text: it must never be taken for a record. ``lasting_error`` returns
    None for an error that passes.
    """
    kept: list[Message] = []
    ended: set[tuple[str | None, int | None]] = set()
    error: str | None = None
    for message in messages:
        place = (message.topic(), message.partition())
        if message.error() is None:
            if place not in ended:
                kept.append(message)
            continue
        problem = lasting_error(message)
        if problem is not None:
            ended.add(place)
            error = error or problem
    return kept, error


def error_text(message: Message, error: KafkaError) -> str:
    """An error that came in place of a message: one line with its place."""
    if error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED:  # of no partition
        return f"{error.str()}{missing_right(error)}"
    at = message.offset()
    place = f"{message.topic()}:{message.partition()}" + ("" if at is None else f" offset {at}")
    if error.code() == KafkaError._AUTO_OFFSET_RESET:
        return f"{place}: the position is outside the log: {error.str()}"
    return f"{place}: {error.str()}{missing_right(error)}"


def plain_values(messages: list[Message]) -> list[Any]:
    """The messages' values as they are."""
    return list(map(Message.value, messages))


def packed_values(messages: list[Message]) -> list[Any]:
    """The messages as packed records. The client returns keys as bytes, headers as list or None."""
    records: list[Any] = messages
    return [pack(record.key(), record.value(), record.headers() or ()) for record in records]


def columns(source: TopicPartition, messages: list[Message], values: list[Any]) -> Fetched:
    """One partition's messages as columns; there is at least one."""
    offsets: list[Any] = list(map(Message.offset, messages))
    kind, time_ms = messages[-1].timestamp()
    known = None if kind == TIMESTAMP_NOT_AVAILABLE else time_ms
    return Fetched(source, offsets, values, offsets[-1] + 1, known, _epochs(messages))


def _epochs(messages: list[Message]) -> tuple[EpochSpan, ...]:
    """The leader epochs of a batch, mostly one. All messages are inspected only if first and last
    differ."""
    first, last = messages[0].leader_epoch(), messages[-1].leader_epoch()
    if first is None or last is None or last < 0:  # from a log older than the epochs
        return ()
    if first == last:
        return (EpochSpan(first, messages[0].offset(), messages[-1].offset()),)  # type: ignore[arg-type]
    spans: list[EpochSpan] = []
    for epoch, group in groupby(messages, key=Message.leader_epoch):
        mine: list[Any] = list(map(Message.offset, group))
        if epoch is not None and epoch >= 0:
            spans.append(EpochSpan(epoch, mine[0], mine[-1]))
    return tuple(spans)


POSITIONS_INTERVAL_S = 1.0
"""How often positions are queried while records arrive. Behind transaction markers at the end of
one partition there is no message that would show the position."""

PARTITIONS_PER_S = 1000
"""Queried in a second while nothing arrives: it takes 2 % of a core (measured)."""


def positions_every_s(partitions: int, busy: bool) -> float:
    """How long positions count. ``busy``: records arrive."""
    return (
        POSITIONS_INTERVAL_S if busy else min(POSITIONS_INTERVAL_S, partitions / PARTITIONS_PER_S)
    )


def offsets_of(places: Iterable[KafkaPartition]) -> dict[TopicPartition, int]:
    """The offsets of those places that have one: others are negative."""
    return {TopicPartition(p.topic, p.partition): p.offset for p in places if p.offset >= 0}


# Reads what librdkafka reports beside its messages: statistics, and log lines of its own.


class _Broker(msgspec.Struct):
    state: str = ""
    nodeid: int = -1


class _Partition(msgspec.Struct):
    broker: int = -1
    desired: bool = False


class _Topic(msgspec.Struct):
    partitions: dict[str, _Partition] = {}


class _Statistics(msgspec.Struct):
    """The part of librdkafka's statistics that is used. They have a page for each partition."""

    brokers: dict[str, _Broker] = {}
    topics: dict[str, _Topic] = {}


def source_state(statistics: str) -> SourceState:
    """The connections' state in librdkafka's statistics (JSON). A partition is fetched from the
    broker ``broker``, its leader or a follower near by; ``desired``: somebody reads it."""
    told = msgspec.json.decode(statistics, type=_Statistics)
    up = [broker for broker in told.brokers.values() if broker.state == "UP"]
    nodes = {broker.nodeid for broker in up if broker.nodeid >= 0}
    away = (
        TopicPartition(topic, int(number))
        for topic, each in told.topics.items()
        for number, partition in each.partitions.items()
        if partition.desired and partition.broker not in nodes
    )
    return SourceState(bool(up), frozenset(away))


ERROR_LOG_INTERVAL_S = 10.0
"""librdkafka repeats its errors thousands of times while a broker is away."""


class ErrorLog:
    """Logs the client's errors, seldom."""

    def __init__(self, log: Any) -> None:
        self._log = log
        self._logged_at = float("-inf")
        self._unlogged = 0

    def add(self, error: KafkaError, now: float) -> None:
        """Log it, or count it for the next one. ``now``: monotonic seconds."""
        self._unlogged += 1
        if now - self._logged_at >= ERROR_LOG_INTERVAL_S:
            self._log.warning("kafka_error", reason=error.str(), count=self._unlogged)
            self._logged_at, self._unlogged = now, 0


class QuietLogger:
    """librdkafka's own log lines as our events."""

    def __init__(self, log: Any) -> None:
        self._log = log

    def log(self, level: int, form: str, *args: object) -> None:
        """Called by confluent-kafka in place of ``logging.Logger.log``."""
        self._log.debug("librdkafka", level=level, line=form % args if args else form)
