"""Reads a seed's topics as they grow: how many changes came, and where a marker is."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from confluent_kafka import Consumer, Message, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.live.seen import row_of
from tests.live.wires import JSON, Form

_MOST, _WAIT_S = 5000, 1.0
"""Messages and seconds of a look."""
_WITHIN_S = 20.0
Place = tuple[str, int]
"""A topic and a partition."""


class Topic:
    """A seed's topic, made here; or the topics of its tables, which the reader makes. One thread's.

    The names of the latter begin with ``name`` and a dot.
    """

    def __init__(
        self,
        bootstrap: str,
        name: str,
        partitions: int = 1,
        *,
        form: Form = JSON,
        of_tables: bool = False,
    ) -> None:
        """Make it."""
        self.name = name
        self.changes = 0
        """Rows that were seen so far, those of markers among them."""
        self._form, self._of_tables = form, of_tables
        self._consumer = Consumer({
            "bootstrap.servers": bootstrap, "group.id": f"look-{name}",
            "enable.auto.commit": False, "log_level": 0,
        })  # fmt: skip
        self._parts: list[TopicPartition] = []
        if not of_tables:
            admin = AdminClient({"bootstrap.servers": bootstrap})
            admin.create_topics([NewTopic(name, partitions, 1)])[name].result(30)
            self._parts = [TopicPartition(name, number, 0) for number in range(partitions)]
            self._consumer.assign(self._parts)

    @property
    def pattern(self) -> str:
        """What a pipeline's ``topics`` has of it."""
        return rf"^{self.name}\..*" if self._of_tables else self.name

    @property
    def places(self) -> list[Place]:
        """Those that are known so far."""
        return [(part.topic, part.partition) for part in self._parts]

    def find(self, table: str, number: int) -> Mapping[Place, int] | None:
        """Look on for a second at most: where each partition ends, once the row with this ``id``
        has come. The ends of the others, in which rows of before it may be."""
        found: dict[Place, int] | None = None
        if self._of_tables:
            self._take_in()
        for message in self._consumer.consume(_MOST, _WAIT_S):
            row = None if message.error() else row_of(self._form, message.key(), message.value())
            self.changes += row is not None
            if row == (table, str(number)):
                found = self._ends()
                self._raise_end(found, message)
        return found

    def _take_in(self) -> None:
        """Read topics that are new, from their first record on."""
        topics = self._consumer.list_topics(timeout=_WITHIN_S).topics
        known = {part.topic for part in self._parts}
        new = [
            TopicPartition(name, number, 0)
            for name, topic in topics.items()
            if name not in known and name.startswith(f"{self.name}.")
            for number in topic.partitions
        ]
        if new:
            self._parts += new
            self._consumer.incremental_assign(new)

    def _ends(self) -> dict[Place, int]:
        """Rows of before may be on their way to other partitions: so their ends stand still."""
        while True:
            found = self._ends_now()
            if len(found) == 1:
                return found
            threading.Event().wait(_WAIT_S)
            if self._of_tables:
                self._take_in()
            if self._ends_now() == found:
                return found

    def _ends_now(self) -> dict[Place, int]:
        found = {}
        for part in self._parts:
            end: int = self._consumer.get_watermark_offsets(part, _WITHIN_S)[1]
            found[part.topic, part.partition] = end
        return found

    @staticmethod
    def _raise_end(found: dict[Place, int], message: Message) -> None:
        """The marker's partition is read through the marker, and needs no more."""
        topic, partition, offset = message.topic(), message.partition(), message.offset()
        assert topic is not None
        assert partition is not None
        assert offset is not None
        found[topic, partition] = offset + 1

    def close(self) -> None:
        """Look no more."""
        self._consumer.close()
