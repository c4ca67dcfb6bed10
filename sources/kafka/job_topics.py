"""The topic of jobs' notifications in Kafka."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import structlog
from confluent_kafka import KafkaError, KafkaException, Message, Producer

from changes.model.printable import json_text
from sources.kafka.settings import connection_settings

SEND_WITHIN_S = 60.0
"""How long the client tries one notification."""

FLUSH_S = 5.0
"""At the end: how long those on their way are waited for."""


class NotificationTopic:
    """See ``Notifications``."""

    def __init__(self, settings: Mapping[str, Any], topic: str) -> None:
        """``settings`` are those of ``[kafka]``."""
        self._topic = topic
        self._log: Any = structlog.get_logger().bind(actor="jobs", topic=topic)
        self._settings = connection_settings(settings) | {
            "message.timeout.ms": int(SEND_WITHIN_S * 1000)
        }
        self._producer: Producer | None = None

    def send(self, key: str, document: Mapping[str, Any]) -> None:
        """See ``Notifications``."""
        try:
            if self._producer is None:
                self._producer = Producer(self._settings)
            value = json_text(document).encode()
            self._producer.produce(self._topic, value, key.encode(), on_delivery=self._delivered)
            self._producer.poll(0)
        except (KafkaException, BufferError) as error:
            self._log.warning("notification_not_sent", reason=str(error))

    def close(self) -> None:
        """See ``Notifications``."""
        left = 0 if self._producer is None else self._producer.flush(FLUSH_S)
        if left:
            self._log.warning("notification_not_sent", reason=f"{left} were not confirmed in time")

    def _delivered(self, error: KafkaError | None, _: Message) -> None:
        if error is not None:
            self._log.warning("notification_not_sent", reason=error.str())
