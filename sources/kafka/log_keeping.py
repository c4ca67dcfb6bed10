"""Asks the broker what it keeps of the logs: where each begins, and for how long.

On a thread of its own, because the answers are wanted while reading stands still: that is when a
log's beginning comes close to what is not applied yet.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import structlog
from confluent_kafka import KafkaException
from confluent_kafka import TopicPartition as KafkaPartition
from confluent_kafka.admin import (
    ConfigResource,
    OffsetSpec,
    ResourceType,
)

from actors.runtime.mailbox import Clock
from actors.runtime.periodic import Periodic
from offsets.position import TopicPartition
from sources.kafka.queries import admin_client

EVERY_S = 30.0
"""Between two queries. A log's beginning moves by segments, which takes minutes to days."""

ANSWER_WITHIN_S = 10.0
"""The limit for one query."""

KNOWN_FOR_S = 300.0
"""An answer counts for so long. A broker that restarts hides nothing meanwhile."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What is kept: the first offset of each log, and by topic the seconds for which the broker
    keeps a record. A topic that is never cut by time (compacted alone, or -1) is not in it."""

    starts: Mapping[TopicPartition, int] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)


Ask = Callable[[], Kept]
"""Asks the broker. Raises KafkaException, TimeoutError."""


class LogKeeping:
    """What is kept of one pipeline's topics. ``kept`` may be called from any thread."""

    def __init__(self, ask: Ask, clock: Clock = time.monotonic) -> None:
        self._ask = ask
        self._clock = clock
        self._last: tuple[float, Kept] | None = None
        self._rounds = Periodic(
            "log-keeping", self.look, EVERY_S, "log-keeping", "log_starts_not_asked"
        )
        self._log = structlog.get_logger().bind(actor="log-keeping")

    def start(self) -> None:
        """Start querying."""
        self._rounds.start()

    def close(self) -> None:
        """Stop querying. A running query is not awaited, because it is bounded in time."""
        self._rounds.close()

    def kept(self) -> Kept:
        """What is known now; nothing if that is too old."""
        last = self._last
        return last[1] if last and self._clock() - last[0] <= KNOWN_FOR_S else Kept()

    def look(self) -> None:
        """Query once, and keep the answer. Runs on the thread."""
        try:
            self._last = (self._clock(), self._ask())
        except (KafkaException, TimeoutError) as error:
            # The logs' ends say the same each second, and are shown as unknown.
            self._log.debug("log_starts_not_known", reason=str(error))


class KeepQuestion:
    """Queries what is kept of some topics. For one thread."""

    def __init__(self, settings: Mapping[str, Any], topics: Sequence[str]) -> None:
        """``settings`` are the consumer's."""
        self._admin = admin_client(settings)
        self._topics = topics

    def __call__(self) -> Kept:
        """See ``Ask``."""
        found = self._admin.list_topics(timeout=ANSWER_WITHIN_S).topics
        topics = [topic for topic in self._topics if topic in found]
        places = [KafkaPartition(topic, p) for topic in topics for p in found[topic].partitions]
        asked = dict.fromkeys(places, OffsetSpec.earliest())
        answers = self._admin.list_offsets(asked, request_timeout=ANSWER_WITHIN_S)
        starts = {
            TopicPartition(place.topic, place.partition): answer.result(ANSWER_WITHIN_S).offset
            for place, answer in answers.items()
        }
        return Kept(starts, dict(self._seconds(topics)))

    def _seconds(self, topics: Sequence[str]) -> Iterable[tuple[str, float]]:
        resources = {ConfigResource(ResourceType.TOPIC, topic): topic for topic in topics}
        asked = self._admin.describe_configs([*resources], request_timeout=ANSWER_WITHIN_S)
        for resource, answer in asked.items():
            found = answer.result(ANSWER_WITHIN_S)
            milliseconds = int(str(found["retention.ms"].value))
            if "delete" in str(found["cleanup.policy"].value) and milliseconds >= 0:
                yield resources[resource], milliseconds / 1000
