"""What the broker says of topics and positions, gathered for the start-position rule.

Used by the composition root before the actors start, then by the fetcher's thread when partitions
are assigned. Asks with a client of its own: the group's consumer is busy being assigned.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import structlog
from confluent_kafka import (
    ConsumerGroupTopicPartitions,
    KafkaException,
    TopicCollection,
)
from confluent_kafka import TopicPartition as KafkaPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from actors.messages import Assigned
from daemon.config import PipelineSection
from offsets.position import TopicPartition
from offsets.recovery import PositionError, StartAt, Watermarks, start_position
from offsets.snapshot import Snapshot

ANSWER_TIMEOUT_S = 20.0
"""For one question to a broker that is there: a leader election may be under way."""


class BrokerUnreachable(Exception):
    """No broker answered: its address and what the client said."""


class TopicMissing(Exception):
    """A configured topic is not on the broker."""


def admin_client(settings: Mapping[str, Any]) -> AdminClient:
    """A client for questions. Consumer settings in a pass-through table mean nothing to it."""
    known = ("bootstrap.", "security.", "sasl.", "ssl.", "client.", "socket.", "broker.")
    # Its own log lines would go to standard error; what matters comes as the answer's error.
    quiet = {k: v for k, v in settings.items() if k.startswith(known)} | {"log_level": 0}
    return AdminClient(quiet)


def topic_ids(
    settings: Mapping[str, Any], topics: list[str], timeout_s: float = 10.0
) -> dict[str, str]:
    """The id of each topic. Raises BrokerUnreachable, TopicMissing.

    An id tells a topic from one of the same name that was made later; nothing else does.
    """
    admin = admin_client(settings)
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
            # As text: two fetches of the same id are not == to each other.
            ids[topic] = str(future.result(timeout_s).topic_id)
        except KafkaException as error:
            raise TopicMissing(f"topic {topic!r}: {error.args[0].str()}") from error
    return ids


@dataclass(frozen=True, slots=True)
class PositionResolver:
    """Decides the start of each assigned partition; call it on the fetcher's thread.

    ``apply_force`` is true when the configuration's force text was not carried out yet.
    """

    settings: Mapping[str, Any]
    group: str
    pipeline: PipelineSection
    recorded: Snapshot
    apply_force: bool

    def __call__(self, sources: list[TopicPartition]) -> Assigned:
        """Read broker commits and watermarks, decide. Raises PositionError, KafkaException."""
        log = structlog.get_logger().bind(actor="fetcher-0")
        if not sources:
            return Assigned({}, {}, {})
        admin = admin_client(self.settings)
        logs = self._watermarks(admin, sources)
        commits = self._commits(admin, sources)
        configured = self._configured(admin, sources)
        starts: dict[TopicPartition, int] = {}
        for source in sources:
            start = start_position(
                source,
                recorded=self.recorded.partitions.get(source),
                committed=commits.get(source),
                log=logs[source],
                configured=self.pipeline.start.start_at,
                configured_offset=configured.get(source),
                forced=self.apply_force,
            )
            starts[source] = start.offset
            fields = {"source": str(source), "offset": start.offset, "origin": start.origin}
            if start.remark is None:
                log.info("start_position", **fields)
            else:
                log.warning("start_position", **fields, remark=start.remark)
        return Assigned(starts, logs, {source: commits.get(source) for source in sources})

    def _watermarks(
        self, admin: AdminClient, sources: list[TopicPartition]
    ) -> dict[TopicPartition, Watermarks]:
        low = self._list(admin, sources, OffsetSpec.earliest())
        high = self._list(admin, sources, OffsetSpec.latest())
        return {source: Watermarks(low[source], high[source]) for source in sources}

    def _list(
        self, admin: AdminClient, sources: list[TopicPartition], spec: OffsetSpec
    ) -> dict[TopicPartition, int]:
        asked = {KafkaPartition(s.topic, s.partition): spec for s in sources}
        answers = admin.list_offsets(asked, request_timeout=ANSWER_TIMEOUT_S)
        return {
            TopicPartition(p.topic, p.partition): future.result(ANSWER_TIMEOUT_S).offset
            for p, future in answers.items()
        }

    def _commits(
        self, admin: AdminClient, sources: list[TopicPartition]
    ) -> dict[TopicPartition, int]:
        partitions = [KafkaPartition(s.topic, s.partition) for s in sources]
        request = [ConsumerGroupTopicPartitions(self.group, partitions)]
        answer = admin.list_consumer_group_offsets(request, request_timeout=ANSWER_TIMEOUT_S)
        found = answer[self.group].result(ANSWER_TIMEOUT_S).topic_partitions
        return {
            TopicPartition(p.topic, p.partition): p.offset for p in found or [] if p.offset >= 0
        }

    def _configured(
        self, admin: AdminClient, sources: list[TopicPartition]
    ) -> dict[TopicPartition, int]:
        start = self.pipeline.start
        match start.start_at:
            case StartAt.OFFSET:
                return {TopicPartition.parse(name): at for name, at in start.offsets.items()}
            case StartAt.TIMESTAMP:
                assert start.timestamp is not None
                spec = OffsetSpec.for_timestamp(int(start.timestamp.timestamp() * 1000))
                found = self._list(admin, sources, spec)
                return {source: offset for source, offset in found.items() if offset >= 0}
            case _:
                return {}


def check_topic_ids(recorded: Snapshot, now: Mapping[str, str]) -> None:
    """Refuse a topic that was deleted and made again: its offsets mean other messages now."""
    for topic, known in recorded.topic_ids.items():
        if topic in now and now[topic] != known:
            raise PositionError(
                f"topic {topic!r} was deleted and made again since the last run (id {known} then, "
                f"{now[topic]} now): the recorded positions and the targets' marks are of the old "
                "one. Use another group and other targets, or remove the offset file and the "
                "targets to read the new topic from its start"
            )
