"""Reads the compacted topic: to its end at the start, then on in the background."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message
from confluent_kafka import TopicPartition as KafkaPartition

from offsets.store import Loaded
from sources.kafka.topic_records import Entries

_T = TypeVar("_T")

POLL_S = 0.2
"""How long a stop may wait for the tail. A record that arrives ends the wait at once."""

AT_ONCE = 1000
"""Records per call: thousands of targets are read in an instant."""


class TailBehind(Exception):
    """The end was not reached in time: one line with the reason, as far as it is known."""


class TopicTail:
    """Keeps ``Entries`` equal to the topic, whichever process writes to it. Any thread may call."""

    def __init__(self, settings: Mapping[str, Any], topic: str, entries: Entries) -> None:
        self._settings = settings
        self._topic = topic
        self._entries = entries
        self._changed = threading.Condition()
        self._positions: dict[int, int] = {}
        self._trouble: str | None = None
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, partitions: list[int]) -> None:
        """Read those partitions from their beginning."""
        consumer = Consumer(
            {
                **self._settings,
                # Never joined and never committed to, but the client requires one.
                "group.id": "binlogd-offsets",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                # Below the log's begin, compaction has left nothing that is not also above it.
                "auto.offset.reset": "earliest",
            }
        )
        consumer.assign([KafkaPartition(self._topic, n, OFFSET_BEGINNING) for n in partitions])
        self._thread = threading.Thread(
            target=self._run, args=(consumer,), name="offset-topic", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()

    def wait_for(self, ends: Mapping[int, int], timeout_s: float) -> None:
        """Return once everything below those offsets is read. Raises TailBehind."""
        with self._changed:
            reached = self._changed.wait_for(
                lambda: all(self._positions.get(n, 0) >= end for n, end in ends.items()), timeout_s
            )
            if not reached:
                why = f": {self._trouble}" if self._trouble else ""
                raise TailBehind(f"its end was not reached within {timeout_s:g} s{why}")

    def position(self, number: int) -> int:
        """How far a partition is read."""
        with self._changed:
            return self._positions.get(number, 0)

    def loaded(self) -> Loaded:
        """The snapshot that the entries make."""
        return self.look(lambda entries: entries.loaded())

    def look(self, at: Callable[[Entries], _T]) -> _T:
        """Read the entries while they stand still."""
        with self._changed:
            return at(self._entries)

    def _run(self, consumer: Consumer) -> None:
        try:
            while not self._stopping.is_set():
                try:
                    first = consumer.poll(POLL_S)
                    if first is not None:
                        self._take([first, *consumer.consume(AT_ONCE, 0)])
                except Exception as error:
                    # Waiters for the end get the error; the thread goes on where it was.
                    with self._changed:
                        self._trouble = f"{type(error).__name__}: {error}"
                    self._stopping.wait(POLL_S)
        finally:
            consumer.close()

    def _take(self, messages: list[Message]) -> None:
        with self._changed:
            for message in messages:
                self._take_one(message)
            self._changed.notify_all()

    def _take_one(self, message: Message) -> None:
        number, offset, error = message.partition(), message.offset(), message.error()
        if error is not None and error.code() != KafkaError._PARTITION_EOF:
            self._trouble = error.str()
            return
        assert number is not None
        assert offset is not None
        self._trouble = None
        if error is None:
            place = f"{self._topic}:{number} offset {offset}"
            self._entries.apply(_bytes(message.key()), _bytes(message.value()), place)
            offset += 1
        # A recreated topic begins below what was read. That the position went back must still be
        # visible when the client has started again.
        self._positions[number] = max(offset, self._positions.get(number, 0))


def _bytes(value: str | bytes | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value


def seconds_left(deadline: float) -> float:
    """Seconds to a monotonic deadline, never below zero."""
    return max(0.0, deadline - time.monotonic())
