"""The topics of jobs in Kafka: notifications that are sent, signals that are read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import structlog
from confluent_kafka import KafkaError, KafkaException, Message, Producer, TopicCollection
from confluent_kafka.admin import AdminClient

from changes.model.printable import json_text
from offsets.position import TopicPartition
from sources.base.port import TopicMissing
from sources.kafka.log_reader import LogReader
from sources.kafka.queries import ANSWER_TIMEOUT_S, admin_client
from sources.kafka.questions import LogQuestions, asking
from sources.kafka.settings import connection_settings

SEND_WITHIN_S = 60.0
"""How long the client tries one notification."""

FLUSH_S = 5.0
"""At the end: how long those on their way are waited for."""


class SignalTopic:
    """See ``SignalLog``."""

    def __init__(self, settings: Mapping[str, Any], topic: str) -> None:
        """``settings`` are those of ``[kafka]``."""
        self._settings = settings
        self._topic = topic
        self._admin: AdminClient | None = None

    @property
    def topic(self) -> str:
        """See ``SignalLog``."""
        return self._topic

    def describe(self) -> tuple[str, list[TopicPartition]]:
        """See ``SignalLog``."""
        with asking():
            asked = TopicCollection([self._topic])
            answers = self._client().describe_topics(asked, request_timeout=ANSWER_TIMEOUT_S)
            try:
                found = answers[self._topic].result(ANSWER_TIMEOUT_S)
            except KafkaException as error:
                if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                    raise
                raise TopicMissing(f"topic {self._topic!r}: {error.args[0].str()}") from error
        parts = sorted(part.id for part in found.partitions)
        return str(found.topic_id), [TopicPartition(self._topic, part) for part in parts]

    def questions(self) -> LogQuestions:
        """See ``SignalLog``."""
        return LogQuestions(self._settings)

    def reader(self) -> LogReader:
        """See ``SignalLog``."""
        return LogReader({**self._settings, "isolation.level": "read_committed"})

    def _client(self) -> AdminClient:
        if self._admin is None:
            self._admin = admin_client(self._settings)
        return self._admin


class NotificationTopic:
    """Sends notifications, at best effort: one that can't be sent is in the log. One thread's."""

    def __init__(self, settings: Mapping[str, Any], topic: str) -> None:
        """``settings`` are those of ``[kafka]``."""
        self._topic = topic
        self._log: Any = structlog.get_logger().bind(actor="jobs", topic=topic)
        self._settings = connection_settings(settings) | {
            "message.timeout.ms": int(SEND_WITHIN_S * 1000)
        }
        self._producer: Producer | None = None

    def send(self, key: str, document: Mapping[str, Any]) -> None:
        """Send one, keyed by the pipeline. Returns at once; raises nothing."""
        try:
            if self._producer is None:
                self._producer = Producer(self._settings)
            value = json_text(document).encode()
            self._producer.produce(self._topic, value, key.encode(), on_delivery=self._delivered)
            self._producer.poll(0)
        except (KafkaException, BufferError) as error:
            self._log.warning("notification_not_sent", reason=str(error))

    def close(self) -> None:
        """Wait for those on their way, for a bounded time."""
        left = 0 if self._producer is None else self._producer.flush(FLUSH_S)
        if left:
            self._log.warning("notification_not_sent", reason=f"{left} were not confirmed in time")

    def _delivered(self, error: KafkaError | None, _: Message) -> None:
        if error is not None:
            self._log.warning("notification_not_sent", reason=error.str())
