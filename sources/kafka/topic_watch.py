"""Watches whether the topics are still the ones whose positions are recorded.

If a topic is deleted and recreated between two refreshes of the client's metadata, reading goes on
at the old position without an error. What the new topic holds below would never be applied. Only
the topic's id shows the difference.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

from confluent_kafka import KafkaException

from offsets.recovery import PositionError
from sources.base.port import NotAnswered, TopicMissing
from sources.kafka.admin import Admin

EVERY_S = 5.0
"""Between two queries: the most that a recreated topic may be read unnoticed. One small request
costs the broker nothing."""

ANSWER_WITHIN_S = 10.0
"""The limit for one answer. A broker that is away is asked again the next time."""


class TopicWatch:
    """Compares the topics' ids with those at the start. Only the fetcher's thread calls it."""

    def __init__(self, settings: Mapping[str, Any], known: Mapping[str, str]) -> None:
        """``known`` maps a topic to its id."""
        self._known = dict(known)
        self._admin = Admin(settings, ANSWER_WITHIN_S)
        self._asked: dict[str, Future[Any]] = {}
        self._ask_at = float("-inf")

    def look(self, now: float) -> str | None:
        """The reason to stop reading, None while all is well. Never waits. ``now``: monotonic
        seconds."""
        if not self._asked:
            if now >= self._ask_at:
                self._ask_at = now + EVERY_S
                self._asked = self._ask()
            return None
        if not all(answer.done() for answer in self._asked.values()):
            return None
        answers, self._asked = self._asked, {}
        there = {topic: answer for topic, answer in answers.items() if answer.exception() is None}
        return self._other({topic: str(there[topic].result().topic_id) for topic in there})

    def check(self) -> None:
        """Wait for the answer. Raises PositionError, NotAnswered."""
        try:
            now = self._admin.ids(self._known)
        except TopicMissing as error:
            raise NotAnswered(str(error), away=False) from error
        if (why := self._other(now)) is not None:
            raise PositionError(why)

    def _ask(self) -> dict[str, Future[Any]]:
        try:
            return self._admin.ask_descriptions(self._known)
        except KafkaException as error:
            failed: Future[Any] = Future()
            failed.set_exception(error)
            return {next(iter(self._known)): failed}

    def _other(self, now: Mapping[str, str]) -> str | None:
        for topic, at in now.items():
            if (known := self._known[topic]) != at:
                return (
                    f"topic {topic!r} was deleted and recreated while it was read (id {known} "
                    f"before, {at} now): positions and marks are of the old one, and what the new "
                    "one holds below them would be skipped. Use another group and other targets, "
                    "or remove the offset file and the targets to read it from its start"
                )
        return None
