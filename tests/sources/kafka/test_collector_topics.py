"""Topics that a collector writes: looked at once the brokers know them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import pytest

from offsets.position import TopicPartition
from sources.base.port import NotAnswered
from sources.base.topics import UnfitTopic
from sources.kafka import collector_topics
from sources.kafka.collector_topics import KafkaCollectorTopics


class Late:
    """A broker that does not know for a moment what was created through another."""

    def __init__(self, settings: Mapping[str, object]) -> None:
        self.asked = 0

    def make(self, topic: str, settings: Mapping[str, str]) -> None:
        """Create it."""

    def partitions(self, topics: Collection[str]) -> list[TopicPartition]:
        """Those there are, from the second question on."""
        self.asked += 1
        if self.asked == 1:
            raise NotAnswered("is not there", away=False, settling=True)
        return [TopicPartition(topic, 0) for topic in topics]

    def settings_of(self, topics: Iterable[str]) -> dict[str, dict[str, str]]:
        """They keep everything."""
        return {topic: {"retention.ms": "-1"} for topic in topics}


def test_a_topic_that_was_created_a_moment_ago_is_asked_for_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A collector's first start has no error in its log; what is unfit is told as ever."""
    monkeypatch.setattr(collector_topics, "Admin", Late)
    KafkaCollectorTopics({}).keep("t", {}, {"retention.ms": "-1"})
    with pytest.raises(UnfitTopic, match="is -1: set it to 5"):
        KafkaCollectorTopics({}).keep("t", {}, {"retention.ms": "5"})
