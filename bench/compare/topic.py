"""Puts a workload into its topic: all at once, or at a steady rate while a contestant runs."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Sequence

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from bench.compare.debezium_avro import Register, unregistered
from bench.compare.messages import Record, encoder, keys, records
from bench.compare.workloads import Workload, stream
from demo.produce import ProduceError, create_topic

_TICK_S = 0.02
"""A live producer's pace: ten messages at once at 500 a second, far below what is measured."""
_FLUSH_WITHIN_S = 120.0


def fill(
    bootstrap: str, workload: Workload, register: Register = unregistered
) -> dict[str, tuple[int, ...]]:
    """Make the topics and write every message; gives by topic the end of each partition.

    Raises ProduceError.
    """
    for topic in workload.topics:
        create_topic(bootstrap, topic, workload.partitions)
    sender = _Sender(bootstrap, workload.topics, keyed=workload.partitions > 1)
    sender.send(records(workload, register))
    sender.close()
    partitions = range(workload.partitions)
    ends = {
        topic: tuple(end_offset(bootstrap, topic, partition) for partition in partitions)
        for topic in workload.topics
    }
    written = sum(map(sum, ends.values()))
    if written != workload.messages:
        raise ProduceError(f"{workload.topic} has {written}, expected {workload.messages}")
    _use_groups(bootstrap, workload.topics[0])
    return ends


def _use_groups(bootstrap: str, topic: str) -> None:
    """Have the broker make its topic of groups: the first contestant that joins one would wait up
    to 3 s for it."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "bench-ends"})
    try:
        consumer.commit(offsets=[TopicPartition(topic, 0, 0)], asynchronous=False)
    finally:
        consumer.close()


def end_offset(bootstrap: str, topic: str, partition: int = 0) -> int:
    """The offset of the partition's next message."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "bench-ends"})
    try:
        _, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=20.0)
    finally:
        consumer.close()
    return int(high)


class LiveProducer:
    """Sends a workload at its rate on a thread of its own, from ``start`` to the last message."""

    def __init__(self, bootstrap: str, topic: str, workload: Workload) -> None:
        self._workload = workload
        self._sender = _Sender(bootstrap, (topic,), linger_ms=5)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.error: Exception | None = None

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End, wherever it is, if it was started; raises what went wrong."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join()
        if self.error is not None:
            raise self.error

    def _run(self) -> None:
        try:
            encode, key = encoder(self._workload), keys(self._workload)
            began = time.monotonic()
            for sent, group in enumerate(stream(self._workload)):
                # Ahead of its time: wait for it, unless all is over.
                while sent >= (time.monotonic() - began) * self._workload.per_second:
                    if self._stopping.wait(_TICK_S):
                        return
                now_ms = time.time_ns() // 1_000_000
                self._sender.send([Record(group.table, key(group), encode(sent, group, now_ms))])
            self._sender.close()
        except Exception as problem:  # told by stop()
            self.error = problem


class _Sender:
    """Messages to one topic, or to that of each table, in order.

    To partition 0; ``keyed``: to that of the message's key, as Java's producer chooses it.
    """

    def __init__(
        self, bootstrap: str, topics: Sequence[str], linger_ms: int = 20, *, keyed: bool = False
    ) -> None:
        self._topics = topics
        self._partition = -1 if keyed else 0
        self._failed: list[KafkaError] = []
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "partitioner": "murmur2_random",
                "log_level": 0,  # what goes wrong is raised by send and close
                "linger.ms": linger_ms,
                "compression.type": "lz4",
                "batch.size": 1_000_000,
                "queue.buffering.max.messages": 200_000,
            }
        )

    def send(self, records: Iterable[Record]) -> None:
        """Hand messages over; waits for room. Raises ProduceError."""
        for table, key, value in records:
            topic = self._topics[table if len(self._topics) > 1 else 0]
            while True:
                try:
                    self._producer.produce(
                        topic, value, key, self._partition, on_delivery=self._delivered
                    )
                    break
                except BufferError:
                    self._producer.poll(1.0)
        self._producer.poll(0)
        self._check()

    def close(self) -> None:
        """Wait for the broker's answers. Raises ProduceError."""
        left = self._producer.flush(_FLUSH_WITHIN_S)
        self._check()
        if left:
            raise ProduceError(f"{left} messages to {self._topics[0]} without an answer")

    def _delivered(self, error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            self._failed.append(error)

    def _check(self) -> None:
        if self._failed:
            topic = self._topics[0]
            raise ProduceError(f"messages not written to {topic}: {self._failed[0].str()}")
