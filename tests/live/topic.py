"""Reads a topic as it grows: how many changes came, and where a marker is."""

from __future__ import annotations

import json

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

_WAIT_S = 1.0


class Topic:
    """A topic of one partition, made here. One thread's."""

    def __init__(self, bootstrap: str, name: str) -> None:
        """Make it."""
        admin = AdminClient({"bootstrap.servers": bootstrap})
        admin.create_topics([NewTopic(name, 1, 1)])[name].result(30)
        self.name = name
        self.changes = 0
        """Rows that were seen so far, those of markers among them."""
        self._consumer = Consumer({
            "bootstrap.servers": bootstrap, "group.id": f"look-{name}",
            "enable.auto.commit": False, "log_level": 0,
        })  # fmt: skip
        self._consumer.assign([TopicPartition(name, 0, 0)])

    def find(self, table: str, number: int) -> int | None:
        """Look on for a second at most: the offset of the row with this ``id``, if it has come."""
        found = None
        for message in self._consumer.consume(500, _WAIT_S):
            value = message.value()
            row = None if value is None or message.error() else _row(value)
            self.changes += row is not None
            if row == (table, str(number)):
                found = message.offset()
        return found

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
