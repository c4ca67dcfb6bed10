"""The consumer group's commit as a store, for a client outside the group.

The running daemon commits through its fetcher's consumer, which is a member. While a group has
members, the broker refuses everybody else. So this store is for a group at rest.

It commits through a consumer that never subscribes. The admin client's call for the same was tried:
it passes on "Not coordinator" from a broker that is still starting, and while the broker is away an
assertion of librdkafka 2.16.0 ends the process.

A static member stays in the group until its session is over, even after its process has ended.
Until then nobody outside the group may commit. The holder of the state directory's lock may take
the member's place for one commit, because the group knows the member by its id.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as KafkaPartition

from actors.runtime.files import known_id
from offsets.position import TopicPartition
from offsets.snapshot import PartitionState, Snapshot
from offsets.store import Loaded, StoreError
from sources.base.configuration import Configuration
from sources.base.port import NotAllowed, NotAnswered
from sources.base.set_queue import SET_TIMEOUT_S, SetQueue
from sources.base.topic_selection import TopicSelection
from sources.kafka.admin import ANSWER_TIMEOUT_S
from sources.kafka.answers import asking, said_by, when_settled
from sources.kafka.cluster import Groups
from sources.kafka.member import member_settings
from sources.kafka.settings import INSTANCE_ID, connection_settings, consumer_settings

REFUSED_WITHIN_S = 5.0
"""A refusal is an answer, and comes at once; this is for a broker that gives none."""

POLL_S = 0.005
"""The length of a poll while a commit is running. Its answer arrives inside a poll but does not end
the poll, so a longer one would make every commit as long."""


class KafkaCommitStore:
    """Stores frontiers and nothing else. They expire when the group has been at rest for long.

    The broker takes a batch as one request. If it refuses some partitions (deleted ones), the set
    fails though the others are stored. Each stored position is true by itself.
    """

    name = "kafka-commit"

    def __init__(
        self,
        settings: Mapping[str, Any],
        selection: TopicSelection,
        pipeline: str,
        group: str,
        timeout_s: float = SET_TIMEOUT_S,
        member: Mapping[str, Any] | None = None,
    ) -> None:
        """``settings`` are the pipeline's of Kafka, ``selection`` its topics; ``timeout_s`` is for
        one set.

        ``member``: the settings of the group's member that this state directory belongs to, whose
        place is taken where the group refuses an outsider.
        """
        self._settings = settings
        self._selection = selection
        self._pipeline = pipeline
        self._group = group
        self._sets = SetQueue(self.name, timeout_s)
        self._timeout_s = timeout_s
        self._member = member
        self._consumer: Consumer | None = None
        # The running commit; only the sets' thread uses it. librdkafka retries a commit by itself,
        # so until it has ended it could overtake a later one, and the group would go back.
        self._under_way = False
        self._problem: str | None = None
        self._outside = False

    def start(self) -> None:
        """Raises StoreError when no broker answers."""
        if self._sets.open:
            return
        consumer = Consumer(
            {
                **connection_settings(self._settings),
                "group.id": self._group,
                "enable.auto.commit": False,
                "on_commit": self._ended,
            }
        )
        try:
            consumer.list_topics(timeout=ANSWER_TIMEOUT_S)
        except KafkaException as error:
            consumer.close()
            raise self._error(error) from error
        self._consumer = consumer
        self._sets.start()

    def get(self) -> Loaded:
        """The group's commits in its topics, as the broker has them now."""
        consumer, deadline = self._opened(), time.monotonic() + ANSWER_TIMEOUT_S
        try:
            sources = self._sources(consumer)
            found = when_settled(lambda: commits_by(consumer, sources), deadline)
        except NotAnswered as error:
            raise StoreError(f"{self._place}: {self._refusal() or error}") from error
        # What is committed is confirmed: the two are one figure here.
        partitions = {source: PartitionState(at, at) for source, at in found.items()}
        return Loaded(Snapshot(self._pipeline, self._group, {}, partitions) if partitions else None)

    def set(self, batch: Snapshot) -> Future[None]:
        """Commit the frontiers of the batch. Fails while the group has members."""
        at = {source: state.frontier for source, state in batch.partitions.items()}
        return self._sets.put(lambda left_s: self._commit(at, time.monotonic() + left_s))

    def stop(self) -> None:
        """Wait for the running commits."""
        self._sets.stop()
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            consumer.close()

    def _sources(self, consumer: Consumer) -> list[TopicPartition]:
        with asking():
            there = consumer.list_topics(timeout=ANSWER_TIMEOUT_S).topics
        return [
            TopicPartition(topic, number)
            for topic in (*self._selection.names, *self._selection.matching(there))
            if topic in there
            for number in sorted(there[topic].partitions)
        ]

    # --- on the thread of the sets

    def _commit(self, at: Mapping[TopicPartition, int], deadline: float) -> None:
        if not at:
            return
        self._wait(deadline, "the commit before is still under way")
        offsets = [KafkaPartition(s.topic, s.partition, offset) for s, offset in at.items()]
        assert self._consumer is not None
        try:
            self._consumer.commit(offsets=offsets, asynchronous=True)
        except KafkaException as error:
            raise self._error(error) from error
        self._under_way, self._outside, self._problem = True, False, None
        self._wait(deadline, f"the broker did not confirm within {self._timeout_s:g} s")
        if self._outside and self._member is not None and self._member.get(INSTANCE_ID):
            self._commit_as(self._member, offsets, deadline)
        elif self._problem is not None:
            raise StoreError(f"{self._place}: {self._problem}")

    def _commit_as(
        self, member: Mapping[str, Any], offsets: list[KafkaPartition], deadline: float
    ) -> None:
        """Join under the member's id, which triggers no rebalance, commit, and leave as it left."""
        held: set[tuple[str, int]] = set()

        def on_assign(consumer: Consumer, partitions: list[KafkaPartition]) -> None:
            held.update((p.topic, p.partition) for p in partitions)

        wanted = {(p.topic, p.partition) for p in offsets}
        consumer = Consumer({**consumer_settings(member, self._group), "log_level": 0})
        try:
            topics = {source.topic for source in self._sources(consumer)}
            consumer.subscribe(sorted(topics), on_assign=on_assign)
            while not wanted <= held:
                if time.monotonic() > deadline:
                    raise StoreError(f"{self._place}: the group has other members: {self._problem}")
                consumer.poll(POLL_S)
            consumer.commit(offsets=offsets, asynchronous=False)
        except KafkaException as error:
            raise self._error(error) from error
        finally:
            consumer.close()

    def _wait(self, deadline: float, else_said: str) -> None:
        assert self._consumer is not None
        while self._under_way:
            left = deadline - time.monotonic()
            if left <= 0:
                raise StoreError(f"{self._place}: {else_said}")
            self._consumer.poll(min(POLL_S, left))

    def _ended(self, error: KafkaError | None, partitions: list[KafkaPartition]) -> None:
        """Called by librdkafka inside poll."""
        codes = [p.error.code() for p in partitions if p.error]
        codes += [error.code()] if error is not None else []
        self._outside = KafkaError.UNKNOWN_MEMBER_ID in codes
        refused = [f"{p.topic}:{p.partition}: {_said(p.error)}" for p in partitions if p.error]
        self._under_way = False
        if refused or error is not None:
            self._problem = "; ".join(sorted(refused)) or (_said(error) if error else "")

    # --- helpers

    def _opened(self) -> Consumer:
        if self._consumer is None or not self._sets.open:
            raise StoreError(f"{self.name}: is not open")
        return self._consumer

    def _refusal(self) -> NotAllowed | None:
        """Which right is missing. The client asks for commits that it may not have until its time
        is over, and tells just that; a query for the group is refused at once."""
        try:
            Groups(self._settings, REFUSED_WITHIN_S).members(self._group)
        except NotAllowed as refusal:
            return refusal
        except NotAnswered:
            return None  # what it was asked for says the same
        return None

    @property
    def _place(self) -> str:
        where = self._settings.get("bootstrap.servers")
        return f"{self.name}: group {self._group!r} at {where}"

    def _error(self, error: KafkaException) -> StoreError:
        return StoreError(f"{self._place}: {said_by(error)}")


def _said(error: KafkaError) -> str:
    return said_by(KafkaException(error))


def commits_by(
    consumer: Consumer, sources: Sequence[TopicPartition], timeout_s: float = ANSWER_TIMEOUT_S
) -> dict[TopicPartition, int]:
    """The group's commits of those partitions that have one, by a consumer that joins nothing.
    Raises NotAnswered.

    The admin client's call for it ends the process, by an assertion of librdkafka 2.16.0, when the
    broker goes away while it waits.
    """
    asked = [KafkaPartition(s.topic, s.partition) for s in sources]
    with asking():
        found = consumer.committed(asked, timeout=timeout_s)
        for partition in found:
            if partition.error is not None:  # unknown is not the same as none
                raise KafkaException(partition.error)
    return {TopicPartition(p.topic, p.partition): p.offset for p in found if p.offset >= 0}


def group_commits(
    settings: Mapping[str, Any],
    group: str,
    sources: Sequence[TopicPartition],
    timeout_s: float = ANSWER_TIMEOUT_S,
) -> dict[TopicPartition, int]:
    """The same with a consumer of its own. Raises NotAnswered."""
    consumer = Consumer(
        {**connection_settings(settings), "group.id": group, "enable.auto.commit": False}
    )
    try:
        return commits_by(consumer, sources, timeout_s)
    finally:
        consumer.close()


# The group's commit for commands: read or moved beside the daemon.


def group_store(config: Configuration, pipeline: str) -> KafkaCommitStore:
    """The store over the group's commit, not started yet."""
    selection, settings = config.topics_of(pipeline), config.kafka_of(pipeline)
    # After a stop the static member still counts for a while: a commit takes its place.
    member = own_member(config, pipeline)
    return KafkaCommitStore(settings, selection, pipeline, config.group(pipeline), member=member)


def own_member(config: Configuration, pipeline: str) -> dict[str, Any] | None:
    """The settings of this state directory's member, if a daemon is one or was.

    Raises StoreError. Creates nothing: a command that only reads may run as another user, or before
    the first start.
    """
    folder, settings = config.daemon.state_dir, config.kafka_of(pipeline)
    try:
        known = known_id(folder)
    except OSError as error:
        raise StoreError(f"{folder / 'id'} can't be read: {error}") from error
    if known is None and INSTANCE_ID not in settings:
        return None
    return member_settings(settings, pipeline, known or "")
