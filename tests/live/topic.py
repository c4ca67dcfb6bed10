"""Reads a topic as it grows: how many changes came, and where a marker is."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

_WAIT_S = 1.0
_WITHIN_S = 20.0


class Topic:
    """A topic, made here. One thread's."""

    def __init__(self, bootstrap: str, name: str, partitions: int = 1) -> None:
        """Make it."""
        admin = AdminClient({"bootstrap.servers": bootstrap})
        admin.create_topics([NewTopic(name, partitions, 1)])[name].result(30)
        self.name = name
        self.changes = 0
        """Rows that were seen so far, those of markers among them."""
        self._consumer = Consumer({
            "bootstrap.servers": bootstrap, "group.id": f"look-{name}",
            "enable.auto.commit": False, "log_level": 0,
        })  # fmt: skip
        self._parts = [TopicPartition(name, number, 0) for number in range(partitions)]
        self._consumer.assign(self._parts)

    def find(self, table: str, number: int) -> Mapping[int, int] | None:
        """Look on for a second at most: where each partition ends, once the row with this ``id``
        has come. The ends of the others, in which rows of before it may be."""
        found: dict[int, int] | None = None
        for message in self._consumer.consume(500, _WAIT_S):
            value = message.value()
            row = None if value is None or message.error() else _row(value)
            self.changes += row is not None
            if row == (table, str(number)):
                found = self._ends()
                found[message.partition()] = message.offset() + 1
        return found

    def _ends(self) -> dict[int, int]:
        """Rows of before may be on their way to other partitions: so their ends stand still."""
        while True:
            found = {part.partition: self._end(part) for part in self._parts}
            if len(found) == 1:
                return found
            threading.Event().wait(_WAIT_S)
            if all(self._end(part) == found[part.partition] for part in self._parts):
                return found

    def _end(self, part: TopicPartition) -> int:
        end: int = self._consumer.get_watermark_offsets(part, _WITHIN_S)[1]
        return end

    def close(self) -> None:
        """Look no more."""
        self._consumer.close()


def _row(value: bytes) -> tuple[str, str] | None:
    """Of a change its table and the ``id`` after it, as text; None of anything else."""
    message = json.loads(value)
    payload = message.get("payload", message) if isinstance(message, dict) else None
    if not isinstance(payload, dict):
        return None
    if "op" in payload:  # Debezium
        return payload["source"]["table"], str((payload.get("after") or {}).get("id"))
    data = payload.get("data")
    if isinstance(data, list) and data:  # Canal: rows of one table
        return payload["table"], str(data[-1].get("id"))
    if isinstance(data, dict):  # Maxwell
        return payload["table"], str(data.get("id"))
    return None
