"""The cluster as a whole: Kafka's adapter of ``Cluster``, and queries about consumer groups."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from offsets.position import TopicPartition
from sources.base.port import GroupMember, NotAnswered
from sources.kafka.admin import ANSWER_TIMEOUT_S, Admin
from sources.kafka.answers import asking, when_settled
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


class Groups(Admin):
    """Queries about groups by one client. Any thread. Each raises NotAnswered."""

    def members(self, group: str) -> list[GroupMember]:
        """The group's members.

        A group that does not exist has none. That is only certain once its coordinator is up.
        """
        return when_settled(lambda: self._members(group), time.monotonic() + ANSWER_TIMEOUT_S)

    def given(self, group: str) -> frozenset[TopicPartition] | None:
        """The partitions that the group's members have. None while it rebalances."""
        found = self._group(group)
        if found is None or found.state.name != "STABLE":
            return None
        assigned = (p for each in found.members for p in each.assignment.topic_partitions)
        return frozenset(TopicPartition(p.topic, p.partition) for p in assigned)

    def _members(self, group: str) -> list[GroupMember]:
        members = getattr(self._group(group), "members", ())
        return [GroupMember(each.client_id, each.host, each.group_instance_id) for each in members]

    def _group(self, group: str) -> Any:
        """The group's description, None where there is no such group."""
        with asking():
            asked = self._client.describe_consumer_groups([group], request_timeout=self._answer_s)
            try:
                return asked[group].result(self._answer_s)
            except KafkaException as error:
                if error.args[0].code() == KafkaError.GROUP_ID_NOT_FOUND:
                    return None
                raise
