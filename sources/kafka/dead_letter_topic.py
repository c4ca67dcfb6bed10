"""Dead letters in a topic: each is the record as it was, plus headers ``binlogd.*`` after its
own."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

import structlog
from confluent_kafka import KafkaError, KafkaException, Message, Producer

from actors.contract.messages import DeadLetter
from actors.contract.ports import NotKept
from offsets.position import TopicPartition
from sources.base.letter import (
    MARK,
    PREFIX,
    Letter,
    LetterId,
    LetterMaker,
    Mark,
    NotALetter,
    from_text,
    summary,
)
from sources.base.port import LogGone, LogRecord, LogUnreadable, NotAnswered
from sources.base.topics import UnfitTopic
from sources.kafka.admin import ANSWER_TIMEOUT_S, Admin
from sources.kafka.answers import missing_right, said_by, when_settled
from sources.kafka.log_reader import LogReader
from sources.kafka.settings import connection_settings

TOPIC_CONFIG = {
    "cleanup.policy": "delete",
    "retention.ms": "-1",
    "retention.bytes": "-1",
    # A letter is a record of any size with a few more headers.
    "max.message.bytes": str(64 << 20),
}
"""The topic's configuration: nothing in it expires, because one day it holds the only copy."""

EXPIRES = "retention.ms"

SEND_TIMEOUT_S = 30.0
"""The limit for the broker to confirm one letter. After that it is sent again."""

LETTER = PREFIX + "letter"
"""A letter without its bytes, as JSON."""
PART = PREFIX + "part"

LARGEST = 1_000_000_000
"""Bytes of a record, for the client. The real limit is the topic's, and the broker enforces it."""

PLAIN = (
    "pipeline", "topic", "partition", "offset", "timestamp", "target", "reason", "error", "when",
)  # fmt: skip
"""The letter's members that have headers of their own, for people with other tools."""


class DeadLetterTopic:
    """See ``LetterTopic``. Any thread: each call has a client of its own."""

    def __init__(self, settings: Mapping[str, Any], topic: str) -> None:
        """``settings`` are the pipeline's of Kafka."""
        self._settings = settings
        self._topic = topic

    def check(self) -> None:
        """See ``LetterTopic``."""
        self._find(make=False)

    def store(self, pipeline: str, maker: LetterMaker) -> TopicLetters:
        """See ``LetterTopic``."""
        remark = self._find(make=True)
        if remark is not None:
            log = structlog.get_logger().bind(pipeline=pipeline, actor="dead-letters")
            log.warning("dead_letters_expire", reason=remark)
        return TopicLetters(self._settings, self._topic, pipeline, maker)

    def read(self, damage: list[str]) -> Iterator[Letter | Mark]:
        """See ``LetterTopic``. One partition after the other; other records are skipped, and a
        topic that does not exist yet has none."""
        return read_topic(self._settings, self._topic, damage)

    def tail(self) -> TopicTail:
        """See ``LetterTopic``."""
        return TopicTail(self._settings, self._topic)

    def _find(self, *, make: bool) -> str | None:
        """A warning if the topic's records expire. Without ``make`` a missing one is not made."""
        try:
            admin = Admin(self._settings)
            if make:
                admin.make(self._topic, TOPIC_CONFIG)
            elif not admin.exists(self._topic):
                return None
            return when_settled(lambda: self._judge(admin), time.monotonic() + ANSWER_TIMEOUT_S)
        except NotAnswered as error:
            raise NotKept(f"topic {self._topic}: {error}") from error

    def _judge(self, admin: Admin) -> str | None:
        found = admin.settings_of([self._topic])[self._topic]
        policy, retention = found["cleanup.policy"], found[EXPIRES]
        if "compact" in policy:
            raise UnfitTopic(
                f"topic {self._topic}: has cleanup.policy={policy}: letters of one key would "
                "replace each other. It must be delete (with retention.ms=-1, for it holds the "
                "only copy one day), or name another"
            )
        if retention != "-1":
            return f"topic {self._topic}: {EXPIRES}={retention}: letters are gone after that time"
        return None


class TopicLetters:
    """The store that the dead letters' actor writes. One per pipeline; only its thread calls it."""

    def __init__(
        self, settings: Mapping[str, Any], topic: str, pipeline: str, maker: LetterMaker
    ) -> None:
        self._settings = settings
        self._topic = topic
        self._pipeline = pipeline
        self._maker = maker
        self._producer: Producer | None = None

    def keep(self, letter: DeadLetter) -> None:
        """Send the letter, and wait until all in-sync replicas have it. Raises NotKept."""
        full = self._maker.make(letter)
        answers: list[KafkaError | None] = []

        def delivered(error: KafkaError | None, _: Message) -> None:
            answers.append(error)

        try:
            producer = self._connected()
            producer.produce(
                self._topic, full.value, full.key, headers=headers_of(full), on_delivery=delivered
            )
            producer.flush(SEND_TIMEOUT_S + 5.0)
        except (KafkaException, BufferError) as error:
            self._producer = None
            raise NotKept(f"topic {self._topic}: {said_by(error, 'WRITE')}") from error
        if not answers or answers[0] is not None:
            self._producer = None  # it may refuse everything from now on, or send this one late
            why = answers[0] if answers else None
            said = "no answer" if why is None else why.str() + missing_right(why, "WRITE")
            raise NotKept(f"topic {self._topic}: {said}")

    def recent(self, within_s: float) -> list[float]:
        """The ages in seconds of this pipeline's letters of the last ``within_s``. Raises
        NotKept."""
        now = time.time()
        since = int((now - within_s) * 1000)
        damage: list[str] = []
        found: dict[LetterId, float] = {}
        for item in read_topic(self._settings, self._topic, damage, since):
            if isinstance(item, Letter) and item.id.pipeline == self._pipeline:
                found[item.id] = max(0.0, now - item.when.timestamp())
        return [age for age in found.values() if age < within_s]

    def close(self) -> None:
        """Every accepted letter is stored already."""
        self._producer = None

    def _connected(self) -> Producer:
        if self._producer is None:
            self._producer = Producer(
                {
                    **connection_settings(self._settings),
                    "acks": "all",
                    "enable.idempotence": True,
                    "linger.ms": 0,
                    "message.max.bytes": LARGEST,
                    "message.timeout.ms": int(SEND_TIMEOUT_S * 1000),
                }
            )
        return self._producer


def headers_of(letter: Letter) -> list[tuple[str, str | bytes | None]]:
    """The record's own headers, then ours."""
    said = summary(letter)
    ours: list[tuple[str, str | bytes | None]] = [(LETTER, json.dumps(said))]
    ours += [(PREFIX + name, str(said[name])) for name in PLAIN if said[name] is not None]
    if letter.part is not None:
        ours.append((PART, letter.part))
    return [*letter.headers, *ours]


class TopicTail:
    """See ``LetterTail``."""

    def __init__(self, settings: Mapping[str, Any], topic: str) -> None:
        self._settings = settings
        self._topic = topic
        self._next: dict[TopicPartition, int] = {}
        self._letters: dict[LetterId, tuple[TopicPartition, int]] = {}
        self._marked: set[LetterId] = set()

    @property
    def letters(self) -> set[LetterId]:
        """See ``LetterTail``."""
        return set(self._letters)

    @property
    def marked(self) -> set[LetterId]:
        """See ``LetterTail``."""
        return self._marked

    def look(self) -> None:
        """See ``LetterTail``. A topic that was recreated is read again from its begin."""
        try:
            admin = Admin(self._settings)
            sources = admin.partitions([self._topic], missing_too=True)
            # Read before the ends: what expires meanwhile is gone at the next look.
            begins, ends = admin.begins(sources), admin.committed_ends(sources)
            if any(at > ends.get(source, 0) for source, at in self._next.items()):
                self._next, self._letters, self._marked = {}, {}, set()
            for source in sources:
                self._read(source, begins[source], ends[source])
        except (NotAnswered, LogUnreadable, LogGone) as error:
            raise NotKept(f"topic {self._topic}: {error}") from error

    def _read(self, source: TopicPartition, begin: int, end: int) -> None:
        self._letters = {
            letter: place
            for letter, place in self._letters.items()
            if place[0] != source or place[1] >= begin
        }
        first = max(begin, self._next.get(source, begin))
        damage: list[str] = []  # `dead-letters list` names it
        if first < end:
            for record in LogReader(self._settings).read(source, first, end - 1):
                for item in _item(source, record, damage):
                    if isinstance(item, Mark):
                        self._marked.add(item.id)
                    else:
                        self._letters[item.id] = source, record.offset
        self._next[source] = max(first, end)


def read_topic(
    settings: Mapping[str, Any], topic: str, damage: list[str], since_ms: int | None = None
) -> Iterator[Letter | Mark]:
    """All letters and marks in a topic, of all pipelines, one partition after the other.

    Other records are skipped. A topic that does not exist yet has none. ``since_ms`` leaves out
    those whose timestamp in the topic is older. Raises NotKept if the broker does not return them.
    """
    try:
        admin = Admin(settings)
        sources = admin.partitions([topic], missing_too=True)
        firsts = admin.begins(sources) if since_ms is None else admin.at_time(sources, since_ms)
        ends = admin.ends(sources)
        for source in sources:
            if firsts.get(source, ends[source]) < ends[source]:
                for record in LogReader(settings).read(source, firsts[source], ends[source] - 1):
                    yield from _item(source, record, damage)
    except (NotAnswered, LogUnreadable, LogGone) as error:
        raise NotKept(f"topic {topic}: {error}") from error


def _item(source: TopicPartition, record: LogRecord, damage: list[str]) -> Iterator[Letter | Mark]:
    last = dict(record.headers)
    try:
        mark, letter = last.get(MARK), last.get(LETTER)
        if letter is not None:
            yield _letter(record, from_text(letter), last.get(PART))
        elif mark is not None:
            yield Mark.parse(from_text(mark))
    except NotALetter as error:
        damage.append(f"{source} offset {record.offset}: {error}")


def _letter(record: LogRecord, said: Any, part: bytes | None) -> Letter:
    try:
        source = TopicPartition(said["topic"], int(said["partition"]))
        own = len(record.headers) - 1
        while record.headers[own][0] != LETTER:
            own -= 1
        return Letter(
            id=LetterId(said["pipeline"], source, int(said["offset"]), said["target"]),
            key=record.key,
            value=record.value,
            headers=record.headers[:own],
            time_ms=said["timestamp"],
            in_log=bool(said["in_log"]),
            tables=tuple(said["tables"]),
            reason=said["reason"],
            error=said["error"],
            when=datetime.fromisoformat(said["when"]),
            part=part,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise NotALetter(f"not a dead letter: {error!r}") from error
