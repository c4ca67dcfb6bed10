"""Topics that a collector writes, and the group of its workers, in Kafka."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from sources.base.port import GroupMember, NotAnswered
from sources.base.topics import UnfitTopic
from sources.kafka.admin import ANSWER_TIMEOUT_S, Admin
from sources.kafka.answers import asking, said_by, when_settled
from sources.kafka.settings import connection_settings


class KafkaCollectorTopics:
    """See ``sources.base.topics.CollectorTopics``."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        """``settings`` are those of ``[kafka]``."""
        self._settings = settings
        self._admin: Admin | None = None

    def keep(
        self, topic: str, settings: Mapping[str, str], must: Mapping[str, str] | None = None
    ) -> None:
        """See ``sources.base.topics.CollectorTopics``."""
        admin = self._asked()
        admin.make(topic, settings)
        # One that was created a moment ago is not known everywhere yet.
        deadline = time.monotonic() + ANSWER_TIMEOUT_S
        when_settled(lambda: _judge(admin, topic, must or {}), deadline)

    def remove(self, topics: Sequence[str]) -> list[str]:
        """See ``sources.base.topics.CollectorTopics``."""
        there = sorted(set(self._asked().names()) & set(topics))
        if there:
            client = AdminClient(connection_settings(self._settings))
            with asking():
                answers = client.delete_topics(there, operation_timeout=ANSWER_TIMEOUT_S)
                for answer in answers.values():
                    answer.result(ANSWER_TIMEOUT_S)
        return there

    def workers(self, group: str) -> list[GroupMember]:
        """See ``sources.base.topics.CollectorTopics``."""
        try:
            # The newer question is for groups of consumers alone.
            client = AdminClient(connection_settings(self._settings))
            found = client.list_groups(group, timeout=ANSWER_TIMEOUT_S)
        except KafkaException as error:
            raise NotAnswered(said_by(error), away=True) from error
        members = (member for each in found for member in each.members)
        return [GroupMember(one.client_id or "", one.client_host or "", None) for one in members]

    def _asked(self) -> Admin:
        if self._admin is None:
            self._admin = Admin(self._settings)
        return self._admin


def _judge(admin: Admin, topic: str, must: Mapping[str, str]) -> None:
    """Raises UnfitTopic, NotAnswered."""
    partitions = len(admin.partitions([topic]))
    if partitions != 1:
        raise UnfitTopic(
            f"topic {topic!r} has {partitions} partitions, and records keep their order in one"
        )
    found = admin.settings_of([topic])[topic] if must else {}
    for name, value in must.items():
        if found.get(name) != value:
            raise UnfitTopic(f"topic {topic!r}: {name} is {found.get(name)}: set it to {value}")
