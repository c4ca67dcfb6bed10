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

from confluent_kafka import IsolationLevel, KafkaException
from confluent_kafka import TopicPartition as KafkaPartition
from confluent_kafka.admin import OffsetSpec

from actors.runtime.mailbox import Clock
from daemon.kafka.log_keeping import Kept
from daemon.kafka.positions import admin_client, said_by
from daemon.runtime.periodic import Periodic
from offsets.position import TopicPartition

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

Ask = Callable[[], tuple[Mapping[TopicPartition, int], str | None]]
"""The reported ends, and why others are missing. Raises KafkaException, TimeoutError."""


@dataclass(frozen=True, slots=True)
class LogEndFigures:
    """The ends of one pipeline's logs. ``unknown_s``: for how long some are unknown, None while all
    are known. ``error``: why. ``kept``: what the broker keeps of them."""

    ends: Mapping[TopicPartition, int] = field(default_factory=dict)
    unknown_s: float | None = 0.0
    error: str | None = None
    kept: Kept = field(default_factory=Kept)


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
            if self._answered and since_s <= KNOWN_FOR_S:
                return LogEndFigures(known, None, None)
            return LogEndFigures(known, since_s, self._error or "no answer yet")

    def look(self) -> None:
        """Query once, and keep the answer. Runs on the thread."""
        try:
            ends, error = self._ask()
        except (KafkaException, TimeoutError) as unanswered:
            ends, error = {}, said_by(unanswered)
        with self._lock:
            now = self._clock()
            self._ends.update({source: (end, now) for source, end in ends.items()})
            self._error = error
            if error is None:
                self._answered, self._whole_at = True, now


class EndQuestion:
    """Queries the ends of all partitions of some topics. For one thread."""

    def __init__(
        self, settings: Mapping[str, Any], topics: Sequence[str], clock: Clock = time.monotonic
    ) -> None:
        """``settings`` are the consumer's: its isolation level decides where its log ends."""
        self._admin = admin_client(settings)
        self._topics = topics
        uncommitted = settings.get("isolation.level") == "read_uncommitted"
        level = IsolationLevel
        self._level = level.READ_UNCOMMITTED if uncommitted else level.READ_COMMITTED
        self._clock = clock
        self._partitions: list[KafkaPartition] = []
        self._partitions_at = float("-inf")

    def __call__(self) -> tuple[Mapping[TopicPartition, int], str | None]:
        """See ``Ask``."""
        now = self._clock()
        if not self._partitions or now - self._partitions_at >= PARTITIONS_EVERY_S:
            self._partitions = self._all_partitions()
            self._partitions_at = now
        asked = dict.fromkeys(self._partitions, OffsetSpec.latest())
        answers = self._admin.list_offsets(
            asked, isolation_level=self._level, request_timeout=ANSWER_WITHIN_S
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
