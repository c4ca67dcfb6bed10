"""Watches whether the topics are still the ones whose positions are recorded, and their partitions.

If a topic is deleted and recreated between two refreshes of the client's metadata, reading goes on
at the old position without an error. What the new topic holds below would never be applied. Only
the topic's id shows the difference.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from offsets.recovery import WITHOUT_IT, PositionError
from sources.base.port import NotAnswered, TopicMissing
from sources.kafka.admin import Admin

EVERY_S = 5.0
"""Between two queries: the most that a recreated topic may be read unnoticed. One small request
costs the broker nothing."""

ANSWER_WITHIN_S = 10.0
"""The limit for one answer. A broker that is away is queried again the next time."""


class TopicWatch:
    """Compares the topics' ids with those that are known. Only the fetcher's thread calls it."""

    def __init__(
        self,
        settings: Mapping[str, Any],
        known: Mapping[str, str],
        may_go: Callable[[str], bool] = lambda topic: False,
    ) -> None:
        """``known`` maps a topic to its id. ``may_go``: whether a topic's absence is no error."""
        self._known = dict(known)
        self._may_go = may_go
        self._admin = Admin(settings, ANSWER_WITHIN_S)
        self._counts: dict[str, int] = {}
        self._reported: dict[str, int] = {}
        self._asked: dict[str, Future[Any]] = {}
        self._ask_at = float("-inf")

    def look(self, now: float) -> str | None:
        """The reason to stop reading, None while all is well. Never waits. ``now``: monotonic
        seconds."""
        if not self._asked:
            if now >= self._ask_at and self._known:
                self._ask_at = now + EVERY_S
                self._asked = self._ask()
            return None
        if not all(answer.done() for answer in self._asked.values()):
            return None
        answers, self._asked = self._asked, {}
        there = {topic: answer for topic, answer in answers.items() if answer.exception() is None}
        found = {topic: self._count(topic, answer) for topic, answer in answers.items()}
        self._counts = {topic: count for topic, count in found.items() if count is not None}
        return self._other({topic: str(there[topic].result().topic_id) for topic in there})

    def _count(self, topic: str, answer: Future[Any]) -> int | None:
        """A topic's partitions; as many as before where that can't be told now. Others would take
        those that they know for all."""
        if (error := answer.exception()) is None:
            return len(answer.result().partitions)
        code = error.args[0].code() if isinstance(error, KafkaException) else None
        return None if code == KafkaError.UNKNOWN_TOPIC_OR_PART else self._counts.get(topic)

    def take_counts(self) -> dict[str, int]:
        """How many partitions the topics have by the last answer; empty where nothing is new."""
        if self._counts == self._reported:
            return {}
        self._reported = self._counts
        return self._counts

    def check(self, topics: Collection[str] = ()) -> dict[str, str]:
        """Wait for the answer. Returns the ids of those ``topics`` that are there, which are known
        from now on. Raises PositionError, NotAnswered."""
        asked = {*self._known, *topics}
        may_go = {topic for topic in asked if self._may_go(topic)}
        try:
            now = self._admin.described(asked - may_go)
        except TopicMissing as error:
            raise NotAnswered(str(error), away=False) from error
        now |= self._admin.described(may_go, missing_too=True)
        ids = {topic: id_ for topic, (id_, _) in now.items()}
        if (why := self._other(ids)) is not None:
            raise PositionError(why)
        found = {topic: ids[topic] for topic in topics if topic in ids}
        self._known |= found
        return found

    def _ask(self) -> dict[str, Future[Any]]:
        try:
            return self._admin.ask_descriptions(self._known)
        except KafkaException as error:
            failed: Future[Any] = Future()
            failed.set_exception(error)
            return {next(iter(self._known)): failed}

    def _other(self, now: Mapping[str, str]) -> str | None:
        for topic, at in now.items():
            if (known := self._known.get(topic, at)) != at:
                return (
                    f"topic {topic!r} was deleted and recreated while it was read (id {known} "
                    f"before, {at} now): positions and marks are of the old one, and what the new "
                    f"one holds below them would be skipped. {WITHOUT_IT}"
                )
        return None
