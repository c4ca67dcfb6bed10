"""The Kafka consumer as a ``RecordSource``. Every call is on the fetcher's thread.

librdkafka's real behaviour was found by experiment: it reports an out-of-range position once and
then the partition is silent; a pause survives a rebalance; an exception inside ``on_assign`` loses
the batch that is being returned.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import structlog
from confluent_kafka import Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as KafkaPartition

from actors.contract.messages import Assigned, Confirmed, Polled, Revoked, SourceState
from actors.contract.ports import SourceListener
from offsets.position import TopicPartition
from offsets.recovery import PositionError, PositionUnknown
from sources.kafka import fetched
from sources.kafka.fetched import ErrorLog, QuietLogger, source_state
from sources.kafka.leftovers import Leftovers, of_group
from sources.kafka.member import Claim
from sources.kafka.settings import (
    INSTANCE_ID,
    PASSING,
    assigns_incrementally,
    consumer_settings,
    revoke_patience_s,
)
from sources.kafka.topic_finder import FollowedTopics
from sources.kafka.topic_watch import TopicWatch

Resolver = Callable[[list[TopicPartition]], Assigned]
"""Finds the start of each partition: reads file, broker and log. Raises PositionError."""


class KafkaSource:
    """One consumer in one group."""

    def __init__(
        self,
        settings: Mapping[str, Any],
        topics: list[str],
        group: str,
        resolve: Resolver,
        pipeline: str,
        *,
        keyed: bool = False,
        watch: TopicWatch | None = None,
        following: FollowedTopics | None = None,
        may_join: Callable[[], None] = lambda: None,
    ) -> None:
        """``keyed``: values are whole packed records (``Format.keyed``). ``watch`` checks that the
        topics are the same; ``following``: they come and go. ``may_join`` raises PositionError."""
        self._may_join = may_join
        self._watch, self._following = watch, following
        self._values = fetched.packed_values if keyed else fetched.plain_values
        self._log = structlog.get_logger().bind(pipeline=pipeline, actor="fetcher-0")
        self._topics = topics if following is None else following.topics
        self._resolve = resolve
        self._listener: SourceListener | None = None
        self._assigned: set[TopicPartition] = set()
        self._trouble: str | None = None
        self._must_rejoin, self._positions_at = False, float("-inf")
        self._errors = ErrorLog(self._log)
        self._state: SourceState | None = None
        whole = consumer_settings(settings, group)
        self._incremental = assigns_incrementally(whole)
        self.revoke_patience_s = revoke_patience_s(whole)
        self._claim = Claim(group, whole.get(INSTANCE_ID))
        self._leftovers = Leftovers(whole, of_group(whole, group))
        self._settings = {
            **whole,
            "error_cb": self._on_error,
            "on_commit": self._on_commit,
            "stats_cb": self._on_stats,
            "logger": QuietLogger(self._log),
        }
        self._consumer = Consumer(self._settings)

    def start(self, listener: SourceListener) -> None:
        """Join the group."""
        self._listener = listener
        self._join()

    def _join(self) -> None:
        try:
            self._may_join()
        except PositionError as error:
            return self._refused(error)
        self._leftovers.joins()
        self._subscribe()

    def _subscribe(self, rebalance: bool = False) -> None:
        """``rebalance``: have the group rebalance though the topics are the same."""
        if rebalance or not self._topics:
            self._consumer.unsubscribe()
        if self._topics:  # to none is an error
            calls = {"on_assign": self._on_assign, "on_revoke": self._on_revoke}
            self._consumer.subscribe(self._topics, **calls, on_lost=self._on_lost)

    def poll(self, max_messages: int, timeout_s: float) -> Polled:
        """Return the fetched messages as columns per partition, in log order."""
        if self._claim.is_due(time.monotonic()) or self._must_rejoin:
            self._rejoin()
        if self._following is not None and self._following.changed():
            return self._follow(self._following)
        if self._leftovers.found(self._topics, time.monotonic()):
            self._subscribe(rebalance=True)
        if self._watch is not None and (other := self._watch.look(time.monotonic())) is not None:
            return Polled(error=other)
        assigned_before = frozenset(self._assigned)
        messages = self._consumer.consume(max_messages, timeout_s)
        if self._trouble is not None:
            trouble, self._trouble = self._trouble, None
            return Polled(error=trouble)
        error: str | None = None
        if any(map(Message.error, messages)):
            messages, error = fetched.without_errors(messages, self._problem)
        batches = tuple(
            fetched.columns(source, mine, self._values(mine))
            for source, mine in fetched.by_source(messages, assigned_before, self._assigned)
            if mine
        )
        state, self._state = self._state, None
        positions = self._positions(bool(messages)) if error is None else {}
        counts = {} if self._watch is None else self._watch.take_counts()
        return Polled(batches, positions, error, state, counts)

    def _follow(self, following: FollowedTopics) -> Polled:
        """Subscribe to the topics that exist now. Missing ones are reported before the revoke."""
        self._topics, before = following.topics, self._topics
        self._must_rejoin = self._must_rejoin or following.missed
        if self._topics != before:
            self._subscribe()
        return Polled(gone=following.gone)

    def pause(self, sources: Collection[TopicPartition] | None = None) -> None:
        """Pause these partitions, or all."""
        self._consumer.pause(self._as_kafka(sources))

    def resume(self, sources: Collection[TopicPartition] | None = None) -> None:
        """Resume these partitions, or all."""
        self._consumer.resume(self._as_kafka(sources))

    def commit(self, frontiers: Mapping[TopicPartition, int], wait: bool) -> None:
        """Commit. A failure is only logged, because the local file is what counts."""
        offsets = [KafkaPartition(s.topic, s.partition, at) for s, at in frontiers.items()]
        try:
            if not wait:
                self._consumer.commit(offsets=offsets, asynchronous=True)
                return
            self._on_commit(None, self._consumer.commit(offsets=offsets, asynchronous=False))
        except KafkaException as error:
            self._log.warning("commit_failed", reason=error.args[0].str())

    def restart(self, sources: tuple[TopicPartition, ...]) -> None:
        """Seek to the starts as they are now. What was fetched ahead is thrown away."""
        try:
            assigned = self._resolve(list(sources))
            for source, at in assigned.starts.items():
                self._consumer.seek(KafkaPartition(source.topic, source.partition, at))
        except PositionUnknown as error:
            return self._refused(error)
        except (PositionError, KafkaException) as error:
            said = error.args[0].str() if isinstance(error, KafkaException) else str(error)
            self._trouble = f"{sources[0]}: can't be read again: {said}"
            return
        self._announce(assigned, sources)

    def close(self) -> None:
        """Leave the group. Assigned partitions are revoked inside."""
        if self._following is not None:
            self._following.close()
        self._consumer.close()

    # --- called by librdkafka inside consume, on this thread

    def _on_assign(self, consumer: Consumer, partitions: list[KafkaPartition]) -> None:
        self._claim.granted()
        self._leftovers.granted(time.monotonic())
        sources = [TopicPartition(p.topic, p.partition) for p in partitions]
        try:
            assigned = self._resolve(sources)
        except PositionError as error:
            # An exception here would lose the batch that consume() is about to return.
            self._refused(error)
            self._assign(consumer, [])
            return
        # The group assigns one whose topic was not found, too: it is not passed on.
        starts = [KafkaPartition(s.topic, s.partition, assigned.starts.get(s, 0)) for s in sources]
        self._assign(consumer, starts)
        self._assigned |= set(sources)
        self._announce(assigned, sources)

    def _announce(self, assigned: Assigned, sources: Sequence[TopicPartition]) -> None:
        if self._following is not None:
            self._following.not_read(sources, assigned.starts)
        for source, start in assigned.starts.items():
            self._log.info("assigned", source=str(source), start=start)
        assert self._listener is not None
        self._listener.assigned(assigned)

    def _assign(self, consumer: Consumer, starts: list[KafkaPartition]) -> None:
        if self._incremental:
            consumer.incremental_assign(starts)
        else:
            consumer.assign(starts)

    def _on_revoke(self, consumer: Consumer, partitions: list[KafkaPartition]) -> None:
        self._gone(partitions, lost=False)

    def _on_lost(self, consumer: Consumer, partitions: list[KafkaPartition]) -> None:
        self._claim.session_over()
        self._gone(partitions, lost=True)

    def _gone(self, partitions: list[KafkaPartition], lost: bool) -> None:
        sources = tuple(TopicPartition(p.topic, p.partition) for p in partitions)
        self._log.info("lost" if lost else "revoked", sources=[str(s) for s in sources])
        assert self._listener is not None
        self._listener.revoked(Revoked(sources, lost))
        self._assigned -= set(sources)

    def _on_commit(self, error: KafkaError | None, partitions: list[KafkaPartition]) -> None:
        if error is not None:
            self._log.warning("commit_failed", reason=error.str())
            return
        taken = fetched.offsets_of(p for p in partitions if p.error is None)
        if taken and self._listener is not None:
            self._listener.confirmed(Confirmed(taken))

    def _on_error(self, error: KafkaError) -> None:
        """Log a client-wide error, seldom: librdkafka reconnects by itself."""
        if error.fatal():
            self._trouble = self._ended(error)
        self._errors.add(error, time.monotonic())

    def _ended(self, error: KafkaError) -> str | None:
        """The client has ended. Returns the error to stop with, None if a new client takes over."""
        waited = self._claim.waits
        trouble = self._claim.lost(error.str(), time.monotonic())
        if trouble is None and not waited:
            event = "member_id_in_use" if self._claim.waits else "session_was_over"
            self._log.warning(event, reason=error.str())
        return trouble

    def _refused(self, error: PositionError) -> None:
        """Without a start nothing is read: rejoin with a new client, or stop."""
        if isinstance(error, PositionUnknown):
            self._log.warning("joins_anew", reason=str(error))
            self._must_rejoin = True
        else:
            self._trouble = str(error)

    def _rejoin(self) -> None:
        """Join with a new client. The old one's partitions are lost, if it had any."""
        self._must_rejoin = False
        trouble = self._trouble
        self._consumer.close()
        self._trouble = trouble  # errors of the old client while it closes do not matter
        if self._assigned:
            self._gone(self._as_kafka(), lost=True)
        self._consumer = Consumer(self._settings)
        self._join()

    def _on_stats(self, text: str) -> None:
        self._state = source_state(text)

    def _problem(self, message: Message) -> str | None:
        problem = message.error()
        assert problem is not None
        # A message's error shows that it is fatal by this code, not by its flag.
        if problem.fatal() or problem.code() == KafkaError._FATAL:
            return self._ended(problem)
        going = self._following is not None and self._following.excuses(message)
        if problem.code() in PASSING or problem.retriable() or going:
            self._on_error(problem)
            return None
        return fetched.error_text(message, problem)

    def _positions(self, busy: bool) -> dict[TopicPartition, int]:
        """The consumer's positions: also past transaction markers, where no message comes."""
        now = time.monotonic()
        every_s = fetched.positions_every_s(len(self._assigned), busy)
        if not self._assigned or now < self._positions_at + every_s:
            return {}
        self._positions_at = now
        return fetched.offsets_of(self._consumer.position(self._as_kafka()))

    def _as_kafka(self, sources: Collection[TopicPartition] | None = None) -> list[KafkaPartition]:
        """Those of the assigned partitions, or all."""
        mine = self._assigned if sources is None else self._assigned.intersection(sources)
        return [KafkaPartition(s.topic, s.partition) for s in mine]
