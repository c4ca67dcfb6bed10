"""Queries to the broker: topics and their ids, offsets, settings.

The client's errors and types end here: callers see ``NotAnswered``, ``TopicMissing`` and this
project's types. Each query is bounded in time. They have a client of their own, because the group's
consumer may be in the middle of an assignment.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicCollection
from confluent_kafka import TopicPartition as KafkaPartition
from confluent_kafka.admin import (
    AclOperation,
    AdminClient,
    ConfigResource,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from offsets.position import TopicPartition
from offsets.recovery import Watermarks
from sources.base.port import NotAllowed, NotAnswered, TopicMissing
from sources.base.topic_selection import TopicSelection
from sources.kafka.answers import AWAY, MOVED, asking, said_by
from sources.kafka.settings import connection_settings

CONNECT_TIMEOUT_S = 10.0
"""The limit for a broker to answer at all, at a start or for a command."""

ANSWER_TIMEOUT_S = 20.0
"""The limit for one query to a broker that is up: a leader election may be running."""

Offsets = dict[TopicPartition, int]

Described = tuple[str, list[TopicPartition]]
"""A topic's id and its partitions."""


class Admin:
    """Queries by one client; see ``Questions``, too. Any thread.

    Each takes ``answer_s`` seconds at most, ANSWER_TIMEOUT_S by default, and raises NotAnswered.
    """

    def __init__(self, settings: Mapping[str, Any], answer_s: float | None = None) -> None:
        """``settings`` are the pipeline's of Kafka. Those of its consumer mean nothing here."""
        self._where = settings.get("bootstrap.servers")
        self._moved = False
        self._answer_s = ANSWER_TIMEOUT_S if answer_s is None else answer_s
        try:
            # Kept: a client without references never gets an answer.
            self._client = AdminClient(connection_settings(settings))
        except KafkaException as error:
            raise NotAnswered(f"the Kafka client refuses: {said_by(error)}", away=True) from error

    def reach(self) -> str:
        """The id of the cluster: two may have groups and topics of the same names. Waits for a
        broker for CONNECT_TIMEOUT_S at most."""
        try:
            return str(self._client.list_topics(timeout=CONNECT_TIMEOUT_S).cluster_id)
        except KafkaException as error:
            said = f"no Kafka broker answers at {self._where}: {said_by(error)}"
            raise NotAnswered(said, away=True) from error

    def exists(self, topic: str) -> bool:
        """Whether there is such a topic."""
        with asking():
            return topic in self._topics()

    def partitions(
        self, topics: Collection[str], *, missing_too: bool = False
    ) -> list[TopicPartition]:
        """All partitions. ``missing_too``: a topic that is not there has none; else it raises."""
        with asking():
            known = self._topics()
        return self._partitions(topics, known, missing_too)

    def partitions_of(self, selection: TopicSelection) -> list[TopicPartition]:
        """All partitions of those selected topics that are there."""
        with asking():
            known = self._topics()
        return self._partitions([*selection.names, *selection.matching(known)], known, True)

    def _partitions(
        self, topics: Collection[str], known: Mapping[str, Any], missing_too: bool
    ) -> list[TopicPartition]:
        found: list[TopicPartition] = []
        for topic in topics:
            if topic in known:
                with asking():
                    if known[topic].error is not None:
                        raise KafkaException(known[topic].error)
                found += (TopicPartition(topic, n) for n in sorted(known[topic].partitions))
            elif not missing_too:
                raise NotAnswered(f"topic {topic!r}: is not there", away=False, settling=True)
        return found

    def _topics(self) -> Mapping[str, Any]:
        # All of them: on some brokers a query for one topic creates it.
        return self._client.list_topics(timeout=self._answer_s).topics

    def ids(self, topics: Collection[str]) -> dict[str, str]:
        """The id of each topic. Raises TopicMissing, too.

        Only the id tells a topic from a recreated one of the same name.
        """
        return {topic: id_ for topic, (id_, _) in self.described(topics).items()}

    def described(
        self, topics: Collection[str], *, missing_too: bool = False
    ) -> dict[str, Described]:
        """The id of each topic, and its partitions. Raises TopicMissing, too; ``missing_too``: a
        topic that is not there is left out."""
        with asking():
            answers = self.ask_descriptions(topics)
        found = {}
        for topic, answer in answers.items():
            try:
                found[topic] = self._described(topic, answer)
            except TopicMissing:
                if not missing_too:
                    raise
        return found

    def selected(self, selection: TopicSelection) -> dict[str, Described]:
        """The topics that a selection takes now: all that it names, or TopicMissing is raised, and
        what its patterns match."""
        found = self.described(selection.names)
        if selection.patterns:
            found |= self.described(selection.matching(self.names()), missing_too=True)
        return found

    def names(self) -> list[str]:
        """The names of all topics."""
        with asking():
            return [*self._topics()]

    def _described(self, topic: str, answer: Future[Any]) -> Described:
        try:
            found = answer.result(self._answer_s)
        except KafkaException as error:
            said, code = f"topic {topic!r}: {said_by(error)}", error.args[0].code()
            if code == KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise TopicMissing(said) from error
            raise NotAnswered(said, code in AWAY) from error
        except TimeoutError as error:
            said = f"topic {topic!r}: no answer within {self._answer_s:g} s"
            raise NotAnswered(said, away=True) from error
        numbers = sorted(part.id for part in found.partitions)
        # As text: two results with the same id are not == to each other.
        return str(found.topic_id), [TopicPartition(topic, number) for number in numbers]

    def unreadable(self, topics: Collection[str]) -> list[str]:
        """See ``Questions``."""
        if not topics:
            return []
        with asking():
            answers = self._client.describe_topics(
                TopicCollection(sorted(topics)),
                include_authorized_operations=True,
                request_timeout=self._answer_s,
            )
            allowed = {
                topic: answer.result(self._answer_s).authorized_operations
                for topic, answer in answers.items()
            }
        # A broker that tells no operations leaves it open.
        return [topic for topic, may in allowed.items() if may and AclOperation.READ not in may]

    def ask_descriptions(self, topics: Collection[str]) -> dict[str, Future[Any]]:
        """Ask for the topics' descriptions without waiting. Raises KafkaException."""
        if not topics:
            return {}
        asked = TopicCollection(sorted(topics))
        return self._client.describe_topics(asked, request_timeout=self._answer_s)

    def make(self, topic: str, settings: Mapping[str, str]) -> None:
        """Create a topic of one partition, so that its records keep their order, unless it exists.
        Replicas as the broker defaults."""
        if self.exists(topic):
            return
        with asking("CREATE"):
            new = NewTopic(topic, 1, -1, config=dict(settings))
            asked = self._client.create_topics([new], operation_timeout=self._answer_s)
            try:
                asked[topic].result(self._answer_s)
            except KafkaException as error:
                # Another member was first.
                if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                    raise

    def settings_of(self, topics: Iterable[str]) -> dict[str, dict[str, str]]:
        """The configuration of each topic."""
        resources = {ConfigResource(ResourceType.TOPIC, topic): topic for topic in topics}
        if not resources:
            return {}
        with asking("DESCRIBE_CONFIGS"):
            asked = self._client.describe_configs([*resources], request_timeout=self._answer_s)
            return {
                resources[resource]: {
                    name: str(entry.value) for name, entry in answer.result(self._answer_s).items()
                }
                for resource, answer in asked.items()
            }

    def compacted(self, topics: Collection[str]) -> dict[str, str]:
        """See ``Questions``."""
        try:
            found = self.settings_of(topics)
        except NotAllowed as error:
            return dict.fromkeys(topics, f"may be compacted: {error}")
        return {
            t: "is compacted" for t, said in found.items() if "compact" in said["cleanup.policy"]
        }

    def begins(self, sources: Sequence[TopicPartition]) -> Offsets:
        """See ``Questions``."""
        return self._offsets(sources, OffsetSpec.earliest())

    def ends(self, sources: Sequence[TopicPartition]) -> Offsets:
        """Where each log ends."""
        return self._offsets(sources, OffsetSpec.latest())

    def topic_ends(self, topics: Collection[str]) -> Offsets:
        """Where each log of the topics ends."""
        return self.ends(self.partitions(topics))

    def watermarks(self, sources: Sequence[TopicPartition]) -> dict[TopicPartition, Watermarks]:
        """See ``Questions``."""
        low, high = self.begins(sources), self.ends(sources)
        return {source: Watermarks(low[source], high[source]) for source in sources}

    def committed_ends(self, sources: Sequence[TopicPartition]) -> Offsets:
        """See ``Questions``."""
        return self._offsets(sources, OffsetSpec.latest(), IsolationLevel.READ_COMMITTED)

    def at_time(self, sources: Sequence[TopicPartition], unix_ms: int) -> Offsets:
        """See ``Questions``."""
        found = self._offsets(sources, OffsetSpec.for_timestamp(unix_ms))
        return {source: offset for source, offset in found.items() if offset >= 0}

    def known_ends(
        self, sources: Sequence[TopicPartition], committed: bool
    ) -> tuple[Offsets, str | None]:
        """The ends of those logs that have a leader, and why others are missing. ``committed``:
        the ends of what is committed."""
        level = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
        found: Offsets = {}
        error: str | None = None
        with asking():
            answers = self._ask_offsets(sources, OffsetSpec.latest(), level)
        for source, answer in answers.items():
            try:
                found[source] = self._offset(answer)
            except (KafkaException, TimeoutError) as unanswered:
                error = f"{source}: {said_by(unanswered)}"
        return found, error

    def _offsets(
        self,
        sources: Sequence[TopicPartition],
        spec: OffsetSpec,
        level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
    ) -> Offsets:
        with asking():
            answers = self._ask_offsets(sources, spec, level)
            return {source: self._offset(answer) for source, answer in answers.items()}

    def _offset(self, answer: Future[Any]) -> int:
        try:
            return int(answer.result(self._answer_s).offset)
        except KafkaException as error:
            self._moved = self._moved or error.args[0].code() in MOVED
            raise

    def _ask_offsets(
        self, sources: Sequence[TopicPartition], spec: OffsetSpec, level: IsolationLevel
    ) -> dict[TopicPartition, Future[Any]]:
        if self._moved:
            # The client asks with the leaders that it knows, and a refusal does not renew these.
            self._topics()
            self._moved = False
        asked = {KafkaPartition(s.topic, s.partition): spec for s in sources}
        answers = self._client.list_offsets(
            asked, isolation_level=level, request_timeout=self._answer_s
        )
        return {TopicPartition(p.topic, p.partition): answer for p, answer in answers.items()}
