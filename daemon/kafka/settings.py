"""What the group's consumer, and what clients beside it, take from the configuration's settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException

CONNECTION = (
    "bootstrap.", "security.", "sasl.", "ssl.", "client.", "socket.", "broker.",
    "enable.ssl.", "enable.sasl.",
)  # fmt: skip
"""How the names of those settings begin that are about the way to a broker, for any client."""

INSTANCE_ID = "group.instance.id"
"""By which the group knows a member again: see ``kafka_member``."""

SESSION_TIMEOUT_MS = 45_000
"""librdkafka's default, and the broker's where it decides (the new group protocol)."""

MAX_POLL_INTERVAL_MS = 300_000
"""librdkafka's default."""


PASSING = frozenset(
    {
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._TRANSPORT,
        KafkaError._RESOLVE,
        KafkaError._TIMED_OUT,
        KafkaError._PARTITION_EOF,
        KafkaError._MAX_POLL_EXCEEDED,
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.NOT_COORDINATOR,
    }
)
"""Errors after which librdkafka goes on at the same place. After any other one (a damaged record,
a codec it lacks, a position outside the log) it goes on *behind* it, or never: that stops the
pipeline, and of that partition nothing more is taken."""


def connection_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """What a client beside the consumer takes from its settings; it logs nothing by itself."""
    # Its own log lines would go to standard error; what matters comes as the answer's error.
    return {k: v for k, v in settings.items() if k.startswith(CONNECTION)} | {"log_level": 0}


def consumer_settings(settings: Mapping[str, Any], group: str) -> dict[str, Any]:
    """Our defaults, the configuration over them, and over both what being right rests on."""
    defaults: dict[str, Any] = {
        # The default of 1000 ms caps small queues at a third of the rate (measured).
        "fetch.queue.backoff.ms": 10,
        "fetch.wait.max.ms": 100,
        # The client's own figures: whether a broker is there.
        "statistics.interval.ms": 1000,
        "isolation.level": "read_committed",
    }
    if settings.get("group.protocol") != "consumer":  # which refuses a strategy of the client's
        defaults["partition.assignment.strategy"] = "cooperative-sticky"
    return {
        **defaults,
        **{k: v for k, v in settings.items() if k != INSTANCE_ID or v != ""},
        "group.id": group,
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "error",
    }


def refused(settings: Mapping[str, Any], group: str) -> str | None:
    """Why a consumer of these settings can't be made, None where it can: it is tried.

    librdkafka alone knows its properties and what they may be.
    """
    try:
        Consumer({**consumer_settings(settings, group), "log_level": 0}).close()
    except KafkaException as error:
        return " ".join(str(error.args[0].str()).split())
    except (TypeError, ValueError) as error:
        return str(error)
    return None


def assigns_incrementally(settings: Mapping[str, Any]) -> bool:
    """Whether assignments come as differences: cooperative ones, and the new group protocol's."""
    strategy = str(settings.get("partition.assignment.strategy", ""))
    return settings.get("group.protocol") == "consumer" or strategy.startswith("cooperative")


def revoke_patience_s(settings: Mapping[str, Any]) -> float:
    """What a revoke may take in all: half of what keeps the membership, be it heartbeats or polls.

    librdkafka's heartbeats go on meanwhile, but the coordinator waits for nobody longer than for
    a poll; the other half is for what the poll that brought the revoke had to do before.
    """
    session_ms = int(settings.get("session.timeout.ms", SESSION_TIMEOUT_MS))
    poll_ms = int(settings.get("max.poll.interval.ms", MAX_POLL_INTERVAL_MS))
    return min(session_ms, poll_ms) / 2 / 1000
