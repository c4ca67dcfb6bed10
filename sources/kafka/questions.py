"""Queries about logs for commands and starts; every failure is NotAnswered.

Each query is bounded in time. The client's errors and types end here: callers see ``NotAnswered``
and this project's types.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from confluent_kafka import IsolationLevel, KafkaError, KafkaException
from confluent_kafka import TopicPartition as KafkaPartition
from confluent_kafka.admin import (
    ConfigResource,
    OffsetSpec,
    ResourceType,
)

from offsets.position import TopicPartition
from offsets.recovery import Watermarks
from sources.base.port import GroupMember, NotAnswered
from sources.kafka import queries as positions
from sources.kafka.commit_store import SETTLE_S, SETTLING
from sources.kafka.queries import ANSWER_TIMEOUT_S, said_by
from sources.kafka.settings import PASSING

AWAY = PASSING | {KafkaError._WAIT_COORD, KafkaError._TIMED_OUT_QUEUE, KafkaError._NOENT}
"""Errors that mean that nobody was there: no coordinator, no leader (``_NOENT``)."""


@contextmanager
def asking() -> Iterator[None]:
    """Turn the client's exceptions into NotAnswered."""
    try:
        yield
    except KafkaException as error:
        raise NotAnswered(said_by(error), error.args[0].code() in AWAY) from error
    except TimeoutError as error:
        raise NotAnswered(said_by(error), away=True) from error


class LogQuestions:
    """Queries about the logs of some topics, by a client of its own. For one thread.

    Each raises NotAnswered.
    """

    def __init__(self, settings: Mapping[str, Any], timeout_s: float = ANSWER_TIMEOUT_S) -> None:
        """``settings`` are the pipeline's of Kafka; ``timeout_s`` is for each answer."""
        self._timeout_s = timeout_s
        with asking():
            self._admin = positions.admin_client(settings)

    def partitions(self, topics: Collection[str]) -> list[TopicPartition]:
        """All partitions of the topics, which are known to exist."""
        with asking():
            found = self._admin.list_topics(timeout=self._timeout_s).topics
        return [TopicPartition(topic, n) for topic in topics for n in found[topic].partitions]

    def begins(self, sources: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """Where each log begins."""
        return self._offsets(sources, OffsetSpec.earliest())

    def watermarks(self, sources: Sequence[TopicPartition]) -> dict[TopicPartition, Watermarks]:
        """Where each log begins and ends."""
        low = self.begins(sources)
        high = self._offsets(sources, OffsetSpec.latest())
        return {source: Watermarks(low[source], high[source]) for source in sources}

    def committed_ends(self, sources: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """The end of what is committed: below it no transaction is open."""
        asked = {KafkaPartition(s.topic, s.partition): OffsetSpec.latest() for s in sources}
        with asking():
            answers = self._admin.list_offsets(
                asked,
                isolation_level=IsolationLevel.READ_COMMITTED,
                request_timeout=self._timeout_s,
            )
            return {
                TopicPartition(p.topic, p.partition): future.result(self._timeout_s).offset
                for p, future in answers.items()
            }

    def at_time(self, sources: Sequence[TopicPartition], unix_ms: int) -> dict[TopicPartition, int]:
        """The first offset at that time or later, for logs that have one."""
        found = self._offsets(sources, OffsetSpec.for_timestamp(unix_ms))
        return {source: offset for source, offset in found.items() if offset >= 0}

    def compacted(self, topics: Collection[str]) -> frozenset[str]:
        """The compacted topics: older messages of a key may be gone, wherever the log begins."""
        resources = {topic: ConfigResource(ResourceType.TOPIC, topic) for topic in topics}
        with asking():
            asked = self._admin.describe_configs(
                list(resources.values()), request_timeout=self._timeout_s
            )
            return frozenset(
                topic
                for topic, resource in resources.items()
                if "compact" in asked[resource].result(self._timeout_s)["cleanup.policy"].value
            )

    def _offsets(
        self, sources: Sequence[TopicPartition], spec: OffsetSpec
    ) -> dict[TopicPartition, int]:
        with asking():
            return positions.list_offsets(self._admin, list(sources), spec, self._timeout_s)


def group_members(settings: Mapping[str, Any], group: str) -> list[GroupMember]:
    """The group's members. Retries while a starting broker does not know. Raises NotAnswered.

    A group that does not exist has no members. That is only certain once its coordinator is up.
    """
    admin = positions.admin_client(settings)
    deadline = time.monotonic() + ANSWER_TIMEOUT_S
    while True:
        try:
            asked = admin.describe_consumer_groups([group], request_timeout=ANSWER_TIMEOUT_S)
            return [
                GroupMember(member.client_id, member.host, member.group_instance_id)
                for member in asked[group].result(ANSWER_TIMEOUT_S).members
            ]
        except KafkaException as error:
            said = error.args[0]
            if said.code() == KafkaError.GROUP_ID_NOT_FOUND:
                return []
            if said.code() not in SETTLING or time.monotonic() > deadline:
                raise NotAnswered(said.str() or said.name(), said.code() in AWAY) from error
        except TimeoutError as error:
            raise NotAnswered(said_by(error), away=True) from error
        threading.Event().wait(SETTLE_S)
