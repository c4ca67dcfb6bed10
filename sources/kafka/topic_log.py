"""A topic that is read outside of any group, in Kafka."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from offsets.position import TopicPartition
from sources.kafka.admin import Admin
from sources.kafka.log_reader import LogReader


class KafkaTopicLog:
    """See ``TopicLog``."""

    def __init__(self, settings: Mapping[str, Any], topic: str) -> None:
        """``settings`` are those of ``[kafka]``."""
        self._settings = settings
        self._topic = topic
        self._admin: Admin | None = None

    @property
    def topic(self) -> str:
        """See ``TopicLog``."""
        return self._topic

    def reach(self) -> None:
        """See ``TopicLog``."""
        self.questions().reach()

    def describe(self) -> tuple[str, list[TopicPartition]]:
        """See ``TopicLog``."""
        return self.questions().described([self._topic])[self._topic]

    def questions(self) -> Admin:
        """See ``TopicLog``."""
        if self._admin is None:
            self._admin = Admin(self._settings)
        return self._admin

    def reader(self) -> LogReader:
        """See ``TopicLog``."""
        return LogReader({**self._settings, "isolation.level": "read_committed"})
