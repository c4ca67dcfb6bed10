"""Writes Debezium's JSON again with JSON Schemas in a registry; key, partition and order stay."""

from __future__ import annotations

import json
import threading
import urllib.request
from collections.abc import Sequence
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError

from confluent_kafka import Consumer, Message, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from demo.servers.apicurio import Apicurio
from tests.live.json_schema import json_schema

_ANSWER_WITHIN_S = 20.0
_LOOK_EVERY_S = 0.2
_MOST = 500
_OF_THE_SERVER = 500
"""Errors from this status on are the registry's own, and may pass."""


class Rewriter:
    """Turns keys and values. One thread's."""

    def __init__(self, confluent_url: str) -> None:
        self._url = confluent_url
        self._ids: dict[tuple[str, str], int] = {}

    def framed(self, data: bytes | None, subject: str) -> bytes | None:
        """A key or value in Confluent's frame; a null stays one."""
        if data is None:
            return None
        document = json.loads(data)
        if document is None or document["schema"] is None:
            return None
        text = json.dumps(json_schema(document["schema"]), ensure_ascii=False)
        id_ = self._ids.get((subject, text))
        if id_ is None:
            id_ = self._ids[subject, text] = self._register(subject, text)
        payload = json.dumps(document["payload"], ensure_ascii=False).encode()
        return b"\0" + id_.to_bytes(4, "big") + payload

    def _register(self, subject: str, text: str) -> int:
        body = json.dumps({"schemaType": "JSON", "schema": text}).encode()
        request = urllib.request.Request(
            f"{self._url}/subjects/{subject}/versions",
            body,
            {"Content-Type": "application/vnd.schemaregistry.v1+json"},
        )
        with urllib.request.urlopen(request, timeout=_ANSWER_WITHIN_S) as answer:
            found: dict[str, Any] = json.load(answer)
        return int(found["id"])


class Relay:
    """From topics whose names begin with one prefix to those of another, in a thread of its own.

    A key's partition is that of Kafka's own producers, by its bytes as they are written.
    """

    def __init__(self, bootstrap: str, prefix: str, to: str, registry: Apicurio) -> None:
        """Begin."""
        self._prefix, self._to = prefix, to
        self._rewriter = Rewriter(registry.confluent_url)
        self._admin = AdminClient({"bootstrap.servers": bootstrap})
        self._producer = Producer({
            "bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 5,
            "partitioner": "murmur2_random",
        })  # fmt: skip
        self._consumer = Consumer({
            "bootstrap.servers": bootstrap, "group.id": f"relay-{to}",
            "enable.auto.commit": False, "auto.offset.reset": "earliest",
            "topic.metadata.refresh.interval.ms": 1000,
        })  # fmt: skip
        self._consumer.subscribe([rf"^{prefix}(\..*)?$"])
        self._made: set[str] = set()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"relay {to}")
        self._thread.start()

    def close(self) -> None:
        """End it."""
        self._over.set()
        self._thread.join()
        self._consumer.close()

    def _run(self) -> None:
        while not self._over.is_set():
            for message in self._consumer.consume(_MOST, _LOOK_EVERY_S):
                if message.error() is None:
                    self._pass_on(message)
            self._producer.flush()

    def _pass_on(self, message: Message) -> None:
        topic = self._to + str(message.topic()).removeprefix(self._prefix)
        if topic not in self._made:
            self._make(topic, str(message.topic()))
        framed: Sequence[bytes | None] | None = None
        while framed is None and not self._over.is_set():
            framed = self._framed(topic, message)
        if framed is not None:
            key, value = framed
            self._producer.produce(topic, value, key)
            self._producer.poll(0)

    def _framed(self, topic: str, message: Message) -> Sequence[bytes | None] | None:
        """Key and value; None where the registry is away, after a pause."""
        try:
            return (
                self._rewriter.framed(message.key(), f"{topic}-key"),
                self._rewriter.framed(message.value(), f"{topic}-value"),
            )
        except HTTPError as refused:
            if refused.code < _OF_THE_SERVER:
                raise
        except (OSError, HTTPException):
            pass
        self._over.wait(_LOOK_EVERY_S)
        return None

    def _make(self, topic: str, like: str) -> None:
        topics = self._admin.list_topics(timeout=_ANSWER_WITHIN_S).topics
        if topic not in topics:
            new = NewTopic(topic, len(topics[like].partitions), 1)
            self._admin.create_topics([new])[topic].result(_ANSWER_WITHIN_S)
        self._made.add(topic)
