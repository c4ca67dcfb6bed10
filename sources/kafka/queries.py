"""Queries to the broker: topics, their ids, log ends, a group's commits.

Any thread may call. Each query is bounded in time and has a client of its own, because the group's
consumer may be in the middle of an assignment.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicCollection
from confluent_kafka import TopicPartition as KafkaPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from offsets.position import TopicPartition
from offsets.store import StoreError
from sources.base.port import BrokerUnreachable, TopicMissing
from sources.kafka.settings import connection_settings

CONNECT_TIMEOUT_S = 10.0
"""The limit for a broker to answer at all, at a start or for a command."""

ANSWER_TIMEOUT_S = 20.0
"""The limit for one query to a broker that is up: a leader election may be running."""


def admin_client(settings: Mapping[str, Any]) -> AdminClient:
    """A client for queries. It gets the connection settings only; consumer settings mean nothing to
    it."""
    return AdminClient(connection_settings(settings))


def topic_ids(
    settings: Mapping[str, Any], topics: list[str], timeout_s: float = 10.0
) -> dict[str, str]:
    """The id of each topic. Raises BrokerUnreachable, TopicMissing.

    Only the id tells a topic from a recreated one of the same name.
    """
    try:
        admin = admin_client(settings)
    except KafkaException as error:
        raise BrokerUnreachable(f"the Kafka client refuses: {error.args[0].str()}") from error
    try:
        admin.list_topics(timeout=timeout_s)
        found = admin.describe_topics(TopicCollection(topics), request_timeout=timeout_s)
    except KafkaException as error:
        where = settings.get("bootstrap.servers")
        raise BrokerUnreachable(
            f"no Kafka broker answers at {where}: {error.args[0].str()}"
        ) from error
    ids: dict[str, str] = {}
    for topic, future in found.items():
        try:
            # As text: two results with the same id are not == to each other.
            ids[topic] = str(future.result(timeout_s).topic_id)
        except KafkaException as error:
            raise TopicMissing(f"topic {topic!r}: {error.args[0].str()}") from error
        except TimeoutError as error:
            raise BrokerUnreachable(f"topic {topic!r}: no answer within {timeout_s:g} s") from error
    return ids


def cluster_id(settings: Mapping[str, Any], timeout_s: float = 10.0) -> str:
    """The cluster's id. Raises BrokerUnreachable.

    Two clusters may have groups and topics of the same names.
    """
    try:
        return str(admin_client(settings).list_topics(timeout=timeout_s).cluster_id)
    except KafkaException as error:
        raise BrokerUnreachable(f"the cluster's id can't be asked: {said_by(error)}") from error


def log_ends(settings: Mapping[str, Any], topics: list[str]) -> dict[TopicPartition, int]:
    """The end of every partition of the topics, now. Raises BrokerUnreachable."""
    admin = admin_client(settings)
    try:
        found = admin.list_topics(timeout=ANSWER_TIMEOUT_S).topics
        sources = [TopicPartition(topic, n) for topic in topics for n in found[topic].partitions]
        return list_offsets(admin, sources, OffsetSpec.latest())
    except (KafkaException, TimeoutError) as error:
        raise BrokerUnreachable(f"the logs' ends can't be asked: {said_by(error)}") from error


def list_offsets(
    admin: AdminClient,
    sources: list[TopicPartition],
    spec: OffsetSpec,
    timeout_s: float = ANSWER_TIMEOUT_S,
) -> dict[TopicPartition, int]:
    """Offsets by an ``OffsetSpec``. Raises KafkaException, TimeoutError."""
    asked = {KafkaPartition(s.topic, s.partition): spec for s in sources}
    answers = admin.list_offsets(asked, request_timeout=timeout_s)
    return {
        TopicPartition(p.topic, p.partition): future.result(timeout_s).offset
        for p, future in answers.items()
    }


def group_commits(
    settings: Mapping[str, Any],
    group: str,
    sources: list[TopicPartition],
    timeout_s: float = ANSWER_TIMEOUT_S,
) -> dict[TopicPartition, int]:
    """The group's commits of those partitions that have one. Raises KafkaException.

    The query uses a consumer that joins nothing. The admin client's call for it ends the process,
    by an assertion of librdkafka 2.16.0, when the broker goes away while it waits.
    """
    consumer = Consumer(
        {**connection_settings(settings), "group.id": group, "enable.auto.commit": False}
    )
    try:
        asked = [KafkaPartition(s.topic, s.partition) for s in sources]
        found = consumer.committed(asked, timeout=timeout_s)
    finally:
        consumer.close()
    for partition in found:
        if partition.error is not None:  # unknown is not the same as none
            raise KafkaException(partition.error)
    return {TopicPartition(p.topic, p.partition): p.offset for p in found if p.offset >= 0}


def said_by(error: BaseException) -> str:
    if isinstance(error, KafkaException):
        return str(error.args[0].str())
    if isinstance(error, StoreError):
        return str(error)
    return "no answer in time"
