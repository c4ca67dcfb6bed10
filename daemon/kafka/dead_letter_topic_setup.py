"""Creates the topic of dead letters if it is missing, and refuses one that would lose letters."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (
    AdminClient,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from actors.contract.ports import NotKept
from daemon.kafka.positions import ANSWER_TIMEOUT_S, admin_client
from daemon.kafka.topic_store import SETTLE_S, SETTLING

TOPIC_CONFIG = {
    "cleanup.policy": "delete",
    "retention.ms": "-1",
    "retention.bytes": "-1",
    # A letter is a record of any size with a few more headers.
    "max.message.bytes": str(64 << 20),
}
"""The topic's configuration: nothing in it expires, because one day it holds the only copy."""


EXPIRES = "retention.ms"


class UnfitTopic(NotKept):
    """The topic would lose letters, now and later: one line."""


def find_topic(settings: Mapping[str, Any], topic: str, *, make: bool = True) -> str | None:
    """Check that the topic exists and keeps its records. Returns a warning if they expire.

    Without ``make`` a missing topic is not created. Raises NotKept, UnfitTopic.
    """
    deadline = time.monotonic() + ANSWER_TIMEOUT_S
    try:
        admin = admin_client(settings)
        if not _make(admin, topic, make):
            return None
        while True:
            try:
                return _judge(admin, topic)
            except KafkaException as error:
                if error.args[0].code() not in SETTLING or time.monotonic() > deadline:
                    raise
                threading.Event().wait(SETTLE_S)
    except KafkaException as error:
        raise NotKept(f"topic {topic}: {error.args[0].str()}") from error
    except TimeoutError as error:
        raise NotKept(f"topic {topic}: no answer within {ANSWER_TIMEOUT_S:g} s") from error


def _make(admin: AdminClient, topic: str, make: bool) -> bool:
    """Whether the topic exists now."""
    if topic in admin.list_topics(timeout=ANSWER_TIMEOUT_S).topics:
        return True
    if not make:
        return False
    # One partition: letters keep their order. Replicas as the broker defaults.
    new = NewTopic(topic, 1, -1, config=TOPIC_CONFIG)
    try:
        asked = admin.create_topics([new], operation_timeout=ANSWER_TIMEOUT_S)
        asked[topic].result(ANSWER_TIMEOUT_S)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:  # another member was first
            raise
    return True


def _judge(admin: AdminClient, topic: str) -> str | None:
    resource = ConfigResource(ResourceType.TOPIC, topic)
    asked = admin.describe_configs([resource], request_timeout=ANSWER_TIMEOUT_S)
    found = asked[resource].result(ANSWER_TIMEOUT_S)
    policy, retention = str(found["cleanup.policy"].value), str(found[EXPIRES].value)
    if "compact" in policy:
        raise UnfitTopic(
            f"topic {topic}: has cleanup.policy={policy}: letters of one key would replace each "
            "other. It must be delete (with retention.ms=-1, for it holds the only copy one day), "
            "or name another"
        )
    if retention != "-1":
        return f"topic {topic}: {EXPIRES}={retention}: letters are gone after that time"
    return None
