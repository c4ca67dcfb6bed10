"""Asks the broker for the logs' ends, on a thread of its own and at its own interval.

The group's consumer learns an end only with fetched data, so nothing while reading pauses or no
broker is there. A lag computed from such an end would stand still, or be 0, just when somebody
looks.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import structlog
from confluent_kafka import IsolationLevel, KafkaException
from confluent_kafka import TopicPartition as KafkaPartition
from confluent_kafka.admin import OffsetSpec

from actors.runtime.mailbox import Clock
from actors.runtime.periodic import Periodic
from offsets.position import TopicPartition
from sources.base.port import OPEN_S
from sources.kafka.log_keeping import Kept
from sources.kafka.queries import admin_client, said_by

EVERY_S = 1.0
"""Between two queries: the most that a shown lag may be old. One request to each broker."""

ANSWER_WITHIN_S = 5.0
"""The limit for one query. A longer one only delays the report that nobody answers."""

KNOWN_FOR_S = 10.0
"""An end counts as known for so long after it was reported. Shorter than two unanswered queries: a
broker that restarts makes every lag unknown for a moment. Longer: an old figure passes for a
present one."""

PARTITIONS_EVERY_S = 30.0
"""Between two queries for the topics' partitions. A new partition is read later than that, because
the consumer's metadata are older."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The reported ends, and why others are missing (``error``). ``stable``: where reading of what
    is committed ends, before the first transaction that is open; only where that is before the
    end."""

    ends: Mapping[TopicPartition, int]
    error: str | None = None
    stable: Mapping[TopicPartition, int] = field(default_factory=dict)


Ask = Callable[[], Answer]
"""Raises KafkaException, TimeoutError."""


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """Nothing at or behind ``offset`` can be read until a transaction ends: ``seconds`` so far."""

    offset: int
    seconds: float


@dataclass(frozen=True, slots=True)
class LogEndFigures:
    """The ends of one pipeline's logs. ``unknown_s``: for how long some are unknown, None while all
    are known. ``error``: why. ``kept``: what the broker keeps of them. ``open``: where records
    can't be read yet."""

    ends: Mapping[TopicPartition, int] = field(default_factory=dict)
    unknown_s: float | None = 0.0
    error: str | None = None
    kept: Kept = field(default_factory=Kept)
    open: Mapping[TopicPartition, OpenTransaction] = field(default_factory=dict)


class LogEnds:
    """The ends of one pipeline's topics. ``figures`` may be called from any thread."""

    def __init__(self, ask: Ask, clock: Clock = time.monotonic) -> None:
        self._ask = ask
        self._clock = clock
        self._lock = threading.Lock()
        self._ends: dict[TopicPartition, tuple[int, float]] = {}
        self._whole_at = clock()
        self._answered = False
        self._error: str | None = None
        self._open: dict[TopicPartition, tuple[int, float]] = {}
        self._told: set[TopicPartition] = set()
        self._log: Any = structlog.get_logger().bind(actor="log-ends")
        self._rounds = Periodic("log-ends", self.look, EVERY_S, "log-ends", "log_ends_not_asked")

    def start(self) -> None:
        """Start querying."""
        self._rounds.start()

    def close(self) -> None:
        """Stop querying. A running query is not awaited, because it is bounded in time."""
        self._rounds.close()

    def figures(self) -> LogEndFigures:
        """What is known now."""
        with self._lock:
            now = self._clock()
            known = {s: end for s, (end, at) in self._ends.items() if now - at <= KNOWN_FOR_S}
            since_s = now - self._whole_at
            open_ = {
                source: OpenTransaction(offset, now - begun)
                for source, (offset, begun) in self._open.items()
                if source in known
            }
            if self._answered and since_s <= KNOWN_FOR_S:
                return LogEndFigures(known, None, None, open=open_)
            return LogEndFigures(known, since_s, self._error or "no answer yet", open=open_)

    def look(self) -> None:
        """Query once, and keep the answer. Runs on the thread."""
        try:
            answer = self._ask()
        except (KafkaException, TimeoutError) as unanswered:
            answer = Answer({}, said_by(unanswered))
        with self._lock:
            now = self._clock()
            self._ends.update({source: (end, now) for source, end in answer.ends.items()})
            self._error = answer.error
            if answer.error is None:
                self._answered, self._whole_at = True, now
            for source in answer.ends:
                self._note_open(source, answer.stable.get(source), now)
        self._tell_open(answer.ends, now)

    def _note_open(self, source: TopicPartition, stable: int | None, now: float) -> None:
        """It is another transaction where the offset moves."""
        before = self._open.get(source)
        if stable is None:
            self._open.pop(source, None)
        elif before is None or before[0] != stable:
            self._open[source] = (stable, now)

    def _tell_open(self, ends: Mapping[TopicPartition, int], now: float) -> None:
        """Once when one has been open for long, and once when it has ended."""
        for source, end in ends.items():
            offset, begun = self._open.get(source, (0, now))
            fields = {"source": str(source), "offset": offset, "messages": end - offset}
            if source not in self._told and now - begun >= OPEN_S:
                self._told.add(source)
                help_ = "kafka-transactions.sh find-hanging names its producer, abort ends it"
                self._log.warning("open_transaction", **fields, help=help_)
            elif source in self._told and now - begun < OPEN_S:
                self._told.discard(source)
                self._log.info("open_transaction_ended", source=str(source))


class EndQuestion:
    """Queries the ends of all partitions of some topics. For one thread."""

    def __init__(
        self, settings: Mapping[str, Any], topics: Sequence[str], clock: Clock = time.monotonic
    ) -> None:
        """``settings`` are the consumer's: its isolation level decides whether it reads what is not
        committed."""
        self._admin = admin_client(settings)
        self._topics = topics
        self._committed = settings.get("isolation.level") != "read_uncommitted"
        self._clock = clock
        self._partitions: list[KafkaPartition] = []
        self._partitions_at = float("-inf")

    def __call__(self) -> Answer:
        """See ``Ask``."""
        now = self._clock()
        if not self._partitions or now - self._partitions_at >= PARTITIONS_EVERY_S:
            self._partitions = self._all_partitions()
            self._partitions_at = now
        # First what is readable: the end may move on between the two, and is never before it.
        level = IsolationLevel
        stable, error = self._latest(level.READ_COMMITTED) if self._committed else ({}, None)
        ends, other = self._latest(level.READ_UNCOMMITTED)
        before = {source: at for source, at in stable.items() if at < ends.get(source, at)}
        return Answer(ends, error or other, before)

    def _latest(self, level: IsolationLevel) -> tuple[dict[TopicPartition, int], str | None]:
        asked = dict.fromkeys(self._partitions, OffsetSpec.latest())
        answers = self._admin.list_offsets(
            asked, isolation_level=level, request_timeout=ANSWER_WITHIN_S
        )
        ends: dict[TopicPartition, int] = {}
        error: str | None = None
        for place, answer in answers.items():
            try:
                ends[TopicPartition(place.topic, place.partition)] = answer.result(
                    ANSWER_WITHIN_S
                ).offset
            except (KafkaException, TimeoutError) as unanswered:
                error = f"{place.topic}:{place.partition}: {said_by(unanswered)}"
        return ends, error

    def _all_partitions(self) -> list[KafkaPartition]:
        found = self._admin.list_topics(timeout=ANSWER_WITHIN_S).topics
        return [
            KafkaPartition(topic, number)
            for topic in self._topics
            if topic in found
            for number in found[topic].partitions
        ]
