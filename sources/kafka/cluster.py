"""Kafka's adapter of ``Cluster``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from confluent_kafka.admin import AdminClient

from sources.base.port import NotAnswered
from sources.kafka.admin import Admin
from sources.kafka.answers import asking
from sources.kafka.settings import connection_settings


class KafkaCluster:
    """See ``Cluster``. Each query takes ``answer_s`` seconds at most."""

    def __init__(self, settings: Mapping[str, Any], answer_s: float) -> None:
        """Asks nothing yet."""
        self._client = AdminClient(connection_settings(settings))
        self._admin = Admin(settings, answer_s)
        self._answer_s = answer_s

    def answers(self) -> None:
        """See ``Cluster``."""
        with asking():
            there = self._client.list_topics(timeout=self._answer_s).brokers
        if not there:
            raise NotAnswered("the broker has not joined its cluster yet", away=True)

    def make(self, topic: str, settings: Mapping[str, str]) -> None:
        """See ``Cluster``."""
        self._admin.make(topic, settings)
