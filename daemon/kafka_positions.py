"""What the broker says of topics and positions, gathered for the start-position rule.

Used by the composition root before the actors start, then by the fetcher's thread when partitions
are assigned. Asks with a client of its own: the group's consumer is busy being assigned.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import structlog
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicCollection
from confluent_kafka import TopicPartition as KafkaPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from actors.messages import Assigned
from daemon.backoff import BackOff
from daemon.config import PipelineSection
from daemon.kafka_settings import PASSING, connection_settings
from daemon.log_check import check_logs
from offsets.position import TopicPartition
from offsets.recovery import (
    PositionError,
    PositionUnknown,
    StartAt,
    Watermarks,
    start_position,
)
from offsets.snapshot import PartitionState, Snapshot
from offsets.store import Loaded, StoreError

ANSWER_TIMEOUT_S = 20.0
"""For one question to a broker that is there: a leader election may be under way."""


ASSIGN_WITHIN_S = 60.0
"""For an assignment, from the first question to the last attempt's begin. That one asks up to six
questions, each for a quarter of this time at most, and the sum must stay well below
``max.poll.interval.ms`` (5 minutes), or the member is put out of the group. Shorter: a broker that
starts anew ends the pipeline."""


AWAY = PASSING | {KafkaError._WAIT_COORD, KafkaError._TIMED_OUT_QUEUE, KafkaError._NOENT}
"""Errors of questions that say that nobody was there: no coordinator, no leader (``_NOENT``)."""


class BrokerUnreachable(Exception):
    """No broker can be asked: its address and what the client said."""


class TopicMissing(Exception):
    """A configured topic is not on the broker."""


def admin_client(settings: Mapping[str, Any]) -> AdminClient:
    """A client for questions. Consumer settings in a pass-through table mean nothing to it."""
    return AdminClient(connection_settings(settings))


def topic_ids(
    settings: Mapping[str, Any], topics: list[str], timeout_s: float = 10.0
) -> dict[str, str]:
    """The id of each topic. Raises BrokerUnreachable, TopicMissing.

    An id tells a topic from one of the same name that was made later; nothing else does.
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
            # As text: two fetches of the same id are not == to each other.
            ids[topic] = str(future.result(timeout_s).topic_id)
        except KafkaException as error:
            raise TopicMissing(f"topic {topic!r}: {error.args[0].str()}") from error
        except TimeoutError as error:
            raise BrokerUnreachable(f"topic {topic!r}: no answer within {timeout_s:g} s") from error
    return ids


def cluster_id(settings: Mapping[str, Any], timeout_s: float = 10.0) -> str:
    """The cluster's own id. Raises BrokerUnreachable.

    Groups and topics of two clusters may have the same names, and mean different things.
    """
    try:
        return str(admin_client(settings).list_topics(timeout=timeout_s).cluster_id)
    except KafkaException as error:
        raise BrokerUnreachable(f"the cluster's id can't be asked: {_said(error)}") from error


def log_ends(settings: Mapping[str, Any], topics: list[str]) -> dict[TopicPartition, int]:
    """The end of every partition of the topics, now. Raises BrokerUnreachable."""
    admin = admin_client(settings)
    try:
        found = admin.list_topics(timeout=ANSWER_TIMEOUT_S).topics
        sources = [TopicPartition(topic, n) for topic in topics for n in found[topic].partitions]
        return list_offsets(admin, sources, OffsetSpec.latest())
    except (KafkaException, TimeoutError) as error:
        raise BrokerUnreachable(f"the logs' ends can't be asked: {_said(error)}") from error


def list_offsets(
    admin: AdminClient,
    sources: list[TopicPartition],
    spec: OffsetSpec,
    timeout_s: float = ANSWER_TIMEOUT_S,
) -> dict[TopicPartition, int]:
    """Offsets by a rule of the broker's. Raises KafkaException, TimeoutError."""
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

    Asked by a consumer that joins nothing. The admin client's call for it ends the process, by an
    assertion of librdkafka 2.16.0, when the broker goes away while it waits.
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


def _tell(error: Exception, attempt: int) -> None:
    log = structlog.get_logger().bind(actor="fetcher-0")
    log.warning("start_position_not_known", reason=_said(error), attempt=attempt)


def _said(error: BaseException) -> str:
    if isinstance(error, KafkaException):
        return str(error.args[0].str())
    if isinstance(error, StoreError):
        return str(error)
    return "no answer in time"


def _is_away(error: Exception) -> bool:
    """Whether a broker, or a partition's leader, was not there to answer; else it has refused."""
    return isinstance(error, TimeoutError) or (
        isinstance(error, KafkaException) and error.args[0].code() in AWAY
    )


class PositionResolver:
    """Decides the start of each assigned partition; called on the fetcher's thread only.

    The offset file is read at each assignment: between two of them it has moved on. A partition
    that this process has read before never gets the configured start again, forced or not.
    """

    def __init__(
        self,
        settings: Mapping[str, Any],
        group: str,
        pipeline: PipelineSection,
        load: Callable[[], Loaded],
        apply_force: bool,
        within_s: float = ASSIGN_WITHIN_S,
        check_topics: Callable[[float], None] | None = None,
    ) -> None:
        """``apply_force``: the configuration's force text was not carried out yet.

        ``within_s``: for how long a broker that does not answer is asked again. ``check_topics``:
        see ``TopicWatch.check``.
        """
        self._check_topics = check_topics
        self.settings = settings
        self.group = group
        self._pipeline = pipeline
        self._load = load
        self.apply_force = apply_force
        self._back_off = BackOff(within_s)
        self._answer_s = within_s / 4
        self._resolved: set[TopicPartition] = set()

    def __call__(self, sources: list[TopicPartition]) -> Assigned:
        """Read the file, the broker's commits and the logs; decide.

        Raises PositionError. A broker that does not answer is asked again for a while, then it is
        PositionUnknown: a partition must not be read from a guess.
        """
        if not sources:
            return Assigned({}, {}, {})
        passing = (KafkaException, TimeoutError, StoreError)
        try:
            return self._back_off.call(lambda: self._resolve(sources), passing, _tell)
        except passing as error:
            kind = PositionUnknown if _is_away(error) else PositionError
            raise kind(f"{sources[0]}: the start can't be decided: {_said(error)}") from error

    def _resolve(self, sources: list[TopicPartition]) -> Assigned:
        if self._check_topics is not None:
            self._check_topics(self._answer_s)
        admin = admin_client(self.settings)
        logs = self._watermarks(admin, sources)
        commits = group_commits(self.settings, self.group, sources, self._answer_s)
        configured = self._configured(admin, sources)
        recorded = self._load().snapshot or Snapshot("", "")
        starts = {
            source: self._decide(source, recorded, commits, logs[source], configured)
            for source in sources
        }
        epochs = {
            source: state.log
            for source, at in starts.items()
            if (state := recorded.partitions.get(source)) is not None
            and state.log is not None
            and state.frontier == at
        }
        # Where retention took all below a marker, there is nothing left to compare.
        there = {s: log for s, log in epochs.items() if log.below >= logs[s].low}
        check_logs(self.settings, there, self._answer_s)
        self._resolved |= set(sources)
        confirmed = {source: commits.get(source) for source in sources}
        frontiers = frozenset(
            source
            for source, at in starts.items()
            if is_frontier(recorded.partitions.get(source), commits.get(source), at)
        )
        running = {
            source: state.running
            for source, at in starts.items()
            if (state := recorded.partitions.get(source)) is not None
            and state.running is not None
            and state.running.at == at
        }
        return Assigned(starts, logs, confirmed, epochs, frontiers, running)

    def _decide(
        self,
        source: TopicPartition,
        recorded: Snapshot,
        commits: Mapping[TopicPartition, int],
        log: Watermarks,
        configured: Mapping[TopicPartition, int],
    ) -> int:
        known_topic = any(other.topic == source.topic for other in recorded.partitions)
        at = self._pipeline.start.start_at
        start = start_position(
            source,
            recorded=recorded.partitions.get(source),
            committed=commits.get(source),
            log=log,
            # A partition added to a topic that is being read holds changes nobody has seen.
            configured=StartAt.EARLIEST if known_topic and not self.apply_force else at,
            configured_offset=configured.get(source),
            forced=self.apply_force and source not in self._resolved,
        )
        said = structlog.get_logger().bind(actor="fetcher-0")
        fields = {"source": str(source), "offset": start.offset, "origin": start.origin}
        if start.remark is None:
            said.info("start_position", **fields)
        else:
            said.warning("start_position", **fields, remark=start.remark)
        return start.offset

    def _watermarks(
        self, admin: AdminClient, sources: list[TopicPartition]
    ) -> dict[TopicPartition, Watermarks]:
        low = list_offsets(admin, sources, OffsetSpec.earliest(), self._answer_s)
        high = list_offsets(admin, sources, OffsetSpec.latest(), self._answer_s)
        return {source: Watermarks(low[source], high[source]) for source in sources}

    def _configured(
        self, admin: AdminClient, sources: list[TopicPartition]
    ) -> dict[TopicPartition, int]:
        start = self._pipeline.start
        match start.start_at:
            case StartAt.OFFSET:
                return {TopicPartition.parse(name): at for name, at in start.offsets.items()}
            case StartAt.TIMESTAMP:
                assert start.timestamp is not None
                spec = OffsetSpec.for_timestamp(int(start.timestamp.timestamp() * 1000))
                found = list_offsets(admin, sources, spec, self._answer_s)
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
                "one (`binlogd offsets show`). Use another group and other targets, or remove the "
                "offset file and the targets to read the new topic from its start"
            )


def is_frontier(recorded: PartitionState | None, committed: int | None, at: int) -> bool:
    """Tell whether all below a start was applied; where an operator chose it nobody knows."""
    if recorded is not None and recorded.reset:
        return False
    return at == committed or (recorded is not None and at == recorded.frontier)
