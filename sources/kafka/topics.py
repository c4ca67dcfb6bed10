"""Kafka's adapter of ``Topics``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sources.kafka.collector_topics import KafkaCollectorTopics, KafkaContinuedTopic
from sources.kafka.dead_letter_topic import DeadLetterTopic
from sources.kafka.job_topics import NotificationTopic
from sources.kafka.log_reader import KafkaTopicLog
from sources.kafka.sender import KafkaSender
from sources.kafka.topic_store import KafkaTopicStore


class KafkaTopics:
    """See ``Topics``."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        """``settings`` are those of ``[kafka]``, or a pipeline's."""
        self._settings = settings

    def letters(self, topic: str) -> DeadLetterTopic:
        """See ``Topics``."""
        return DeadLetterTopic(self._settings, topic)

    def offsets(self, topic: str, pipeline: str, group: str) -> KafkaTopicStore:
        """See ``Topics``."""
        return KafkaTopicStore(self._settings, topic, pipeline, group)

    def log(self, topic: str) -> KafkaTopicLog:
        """See ``Topics``."""
        return KafkaTopicLog(self._settings, topic)

    def sender(self) -> KafkaSender:
        """See ``Topics``."""
        return KafkaSender(self._settings)

    def notifications(self, topic: str) -> NotificationTopic:
        """See ``Topics``."""
        return NotificationTopic(self._settings, topic)

    def of_collectors(self) -> KafkaCollectorTopics:
        """See ``Topics``."""
        return KafkaCollectorTopics(self._settings)

    def continued(self, topic: str) -> KafkaContinuedTopic:
        """See ``Topics``."""
        return KafkaContinuedTopic(self._settings, topic)
