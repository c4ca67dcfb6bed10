"""A store in a compacted Kafka topic, like Kafka Connect's offsets.

It outlives the machine and is shared: a member that gets a partition finds what another member
recorded for it, marks included.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from functools import partial
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from offsets.position import TopicPartition
from offsets.snapshot import Snapshot
from offsets.store import Loaded, StoreError
from sources.base.port import NotAnswered
from sources.base.set_queue import SET_TIMEOUT_S, SetQueue
from sources.kafka.admin import ANSWER_TIMEOUT_S, Admin
from sources.kafka.answers import said_by, when_settled
from sources.kafka.settings import connection_settings
from sources.kafka.topic_records import Entries, TopicRecord, records
from sources.kafka.topic_store_tail import TailBehind, TopicTail, seconds_left


class KafkaTopicStore:
    """Stores one record per partition and target, under keys of the pipeline and group.

    A batch is several records, so a failed set may store some of them. Each is true by itself. The
    record that vouches for the others (a force was carried out) is written last.
    """

    name = "kafka-topic"

    def __init__(
        self,
        settings: Mapping[str, Any],
        topic: str,
        pipeline: str,
        group: str,
        timeout_s: float = SET_TIMEOUT_S,
    ) -> None:
        """``settings`` are the pipeline's of Kafka; ``timeout_s`` is for one set."""
        self._settings = connection_settings(settings)
        self._topic = topic
        self._entries = Entries(pipeline, group)
        self._tail: TopicTail | None = None
        self._sets = SetQueue(self.name, timeout_s)
        self._timeout_s = timeout_s
        self._admin: Admin | None = None
        self._producer: Producer | None = None
        self._sources: list[TopicPartition] = []
        self._sent: dict[bytes, bytes] = {}

    def start(self) -> None:
        """Create the topic if it is missing and read it to its end. Raises StoreError.

        Refuses a topic whose records expire: cleanup.policy must be compact.
        """
        if self._sets.open:
            return
        try:
            self._admin = Admin(self._settings)
            self._admin.make(self._topic, {"cleanup.policy": "compact"})
            deadline = time.monotonic() + ANSWER_TIMEOUT_S
            self._sources = when_settled(partial(self._found, self._admin), deadline)
            self._producer = self._new_producer()
            self._tail = TopicTail(self._settings, self._topic, self._entries)
            self._tail.start([source.partition for source in self._sources])
        except (KafkaException, NotAnswered) as error:
            raise self._error(error) from error
        try:
            self._read_to_end()
        except StoreError:
            self._tail.stop()
            raise
        known = self._tail.loaded().snapshot
        if known is not None:
            # A mark that was read is not written again, over a newer one from another member.
            self._sent = dict(records(known).targets)
        self._sets.start()

    def get(self) -> Loaded:
        """Everything that any member wrote before this call. Raises StoreError."""
        if not self._sets.open or self._tail is None:
            raise StoreError(f"{self.name}: is not open")
        self._read_to_end()
        return self._tail.loaded()

    def set(self, batch: Snapshot) -> Future[None]:
        """Done when all in-sync replicas have the batch's new records."""
        return self._sets.put(lambda left_s: self._write(batch, time.monotonic() + left_s))

    def stop(self) -> None:
        """Wait for the running sets, then end the tail."""
        was_open = self._sets.open
        self._sets.stop()
        if was_open and self._tail is not None:
            self._tail.stop()
            self._producer = None

    # --- the topic

    def _found(self, admin: Admin) -> list[TopicPartition]:
        """The topic's partitions, which have leaders. Raises StoreError, NotAnswered."""
        policy = admin.settings_of([self._topic])[self._topic]["cleanup.policy"]
        if policy != "compact":
            raise StoreError(
                f"{self._place} has cleanup.policy={policy}: its records would be deleted with "
                "their age, and positions with them. It must be compact, or name another topic"
            )
        sources = admin.partitions([self._topic])
        admin.ends(sources)
        return sources

    def _read_to_end(self) -> None:
        assert self._admin is not None
        assert self._tail is not None
        deadline = time.monotonic() + ANSWER_TIMEOUT_S
        try:
            # A broker that came back may have no leader for the topic yet.
            ends = when_settled(partial(self._admin.ends, self._sources), deadline)
            if any(end < self._tail.position(source.partition) for source, end in ends.items()):
                raise self._recreated()
            self._tail.wait_for(
                {source.partition: end for source, end in ends.items()}, seconds_left(deadline)
            )
        except (NotAnswered, TailBehind) as error:
            raise self._error(error) from error

    # --- writing, on the thread of the sets

    def _new_producer(self) -> Producer:
        return Producer(
            {
                **self._settings,
                "acks": "all",
                "enable.idempotence": True,
                "max.in.flight.requests.per.connection": 1,
                "linger.ms": 5,
                "message.timeout.ms": max(1, int(self._timeout_s * 1000)),
                "queue.buffering.max.messages": 1_000_000,
            }
        )

    def _write(self, batch: Snapshot, deadline: float) -> None:
        encoded = records(batch)
        # Partitions are this member's alone: they are new when the topic differs. A target's mark
        # may be another member's by now: ours is new when it was not sent yet.
        partitions = [r for r in encoded.partitions if self._stands(r.key) != r.value]
        targets = [
            r
            for r in encoded.targets
            if self._sent.get(r.key) != r.value or self._stands(r.key) is None
        ]
        self._send([*partitions, *targets], deadline)
        self._sent.update(targets)
        if self._stands(encoded.pipeline.key) != encoded.pipeline.value:
            self._send([encoded.pipeline], deadline)

    def _stands(self, key: bytes) -> bytes | None:
        assert self._tail is not None
        return self._tail.look(lambda entries: entries.value(key))

    def _send(self, batch: Iterable[TopicRecord], deadline: float) -> None:
        """Write records and wait. Raises StoreError unless every one is confirmed."""
        assert self._producer is not None
        failures: list[KafkaError] = []
        went_back: list[Message] = []
        assert self._tail is not None
        floor = {s.partition: self._tail.position(s.partition) for s in self._sources}

        def heard(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                failures.append(error)
            elif (message.offset() or 0) < floor[message.partition() or 0]:
                went_back.append(message)

        try:
            for key, value in batch:
                self._producer.produce(self._topic, value, key, on_delivery=heard)
            open_yet = self._producer.flush(seconds_left(deadline))
        except (KafkaException, BufferError) as error:
            raise self._error(error) from error
        if any(error.fatal() for error in failures):
            self._producer = self._new_producer()  # the old producer refuses everything from now on
        if failures:
            raise StoreError(f"{self._place}: {failures[0].str()}")
        if went_back:
            raise self._recreated()
        if open_yet:
            raise StoreError(f"{self._place}: no broker confirmed within {self._timeout_s:g} s")

    def _recreated(self) -> StoreError:
        return StoreError(
            f"{self._place} was deleted and recreated while this runs: what it held is not there. "
            "Start again: the other stores and the targets know the positions"
        )

    @property
    def _place(self) -> str:
        where = self._settings.get("bootstrap.servers")
        return f"{self.name}: topic {self._topic!r} at {where}"

    def _error(self, error: Exception) -> StoreError:
        return StoreError(f"{self._place}: {said_by(error)}")
