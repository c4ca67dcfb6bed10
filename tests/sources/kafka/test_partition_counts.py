"""How many partitions topics have, as their watch tells it beside a broker that answers in part."""

from __future__ import annotations

from collections.abc import Collection
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from sources.kafka import topic_watch
from sources.kafka.topic_watch import EVERY_S, TopicWatch


class PartlyThere:
    """``failing``: by topic what the broker answers instead of its two partitions."""

    def __init__(self) -> None:
        self.failing: dict[str, int] = {}

    def ask_descriptions(self, topics: Collection[str]) -> dict[str, Future[Any]]:
        return {topic: self._answer(topic) for topic in topics}

    def _answer(self, topic: str) -> Future[Any]:
        answer: Future[Any] = Future()
        if topic in self.failing:
            answer.set_exception(KafkaException(KafkaError(self.failing[topic])))
        else:
            answer.set_result(SimpleNamespace(topic_id=f"id of {topic}", partitions=[0, 1]))
        return answer


def test_a_topic_that_does_not_answer_has_as_many_as_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Cuts need the number of all: else a part of the log would be taken for the whole. One that is
    gone has none."""
    broker, now = PartlyThere(), 0.0
    monkeypatch.setattr(topic_watch, "Admin", lambda *_: broker)
    watch = TopicWatch({}, {"a": "id of a", "b": "id of b"}, lambda topic: topic == "b")

    def counts() -> dict[str, int]:
        nonlocal now
        now += EVERY_S
        assert watch.look(now) is None  # it asks
        assert watch.look(now) is None
        return watch.take_counts()

    assert counts() == {"a": 2, "b": 2}
    broker.failing["b"] = KafkaError._TIMED_OUT
    assert counts() == {}  # nothing is new
    broker.failing["b"] = KafkaError.UNKNOWN_TOPIC_OR_PART
    assert counts() == {"a": 2}
