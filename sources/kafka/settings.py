"""Settings of the group's consumer and of other clients, made from the configuration."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException

CONNECTION = (
    "bootstrap.", "security.", "sasl.", "ssl.", "client.", "socket.", "broker.",
    "enable.ssl.", "enable.sasl.",
)  # fmt: skip
"""Prefixes of the settings about the connection to a broker, for any client."""

INSTANCE_ID = "group.instance.id"
"""The setting by which the group recognises a member: see ``member.py``."""

SESSION_TIMEOUT_MS = 45_000
"""librdkafka's default, and the broker's where the broker decides (the new group protocol)."""

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
"""Errors after which librdkafka goes on at the same place. After any other error (a damaged record,
a codec it lacks, a position outside the log) it goes on *behind* the place, or never. Such an error
stops the pipeline, and nothing more of that partition is taken."""


def connection_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The connection settings for a client beside the consumer. It logs nothing by itself."""
    # Its log lines would go to standard error; what matters comes as an error of the call.
    return {k: v for k, v in settings.items() if k.startswith(CONNECTION)} | {"log_level": 0}


def consumer_settings(settings: Mapping[str, Any], group: str) -> dict[str, Any]:
    """Our defaults, then the configuration, then the settings on which correctness rests."""
    defaults: dict[str, Any] = {
        # The default of 1000 ms caps small queues at a third of the rate (measured).
        "fetch.queue.backoff.ms": 10,
        "fetch.wait.max.ms": 100,
        # The client's statistics: whether a broker is connected.
        "statistics.interval.ms": 1000,
        "isolation.level": "read_committed",
    }
    if (
        settings.get("group.protocol") != "consumer"
    ):  # which refuses an assignment strategy of the client's
        defaults["partition.assignment.strategy"] = "cooperative-sticky"
    return {
        **defaults,
        **{k: v for k, v in settings.items() if k != INSTANCE_ID or v != ""},
        "group.id": group,
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "error",
    }


MOST_PROBLEMS = 20
"""librdkafka reports one wrong property at a time. So many are looked for."""


def problems(settings: Mapping[str, Any], group: str) -> Iterator[tuple[str | None, str]]:
    """The settings that the client refuses, each with the reason. The last may have no name."""
    left = dict(settings)
    for _ in range(MOST_PROBLEMS):
        reason = _refused(left, group)
        if reason is None:
            return
        # Text such as: No such configuration property: "foo.bar"
        key = next((k for k in left if re.search(rf'["`\s]{re.escape(k)}["`\s]', reason)), None)
        yield key, reason
        if key is None:
            return
        del left[key]


def _refused(settings: Mapping[str, Any], group: str) -> str | None:
    """Why no consumer can be made with these settings, None if one can: it is tried.

    Only librdkafka knows its properties and their values.
    """
    try:
        Consumer({**consumer_settings(settings, group), "log_level": 0}).close()
    except KafkaException as error:
        return " ".join(str(error.args[0].str()).split())
    except (TypeError, ValueError) as error:
        return str(error)
    return None


def assigns_incrementally(settings: Mapping[str, Any]) -> bool:
    """Whether assignments come as differences: with cooperative strategies and the new protocol."""
    strategy = str(settings.get("partition.assignment.strategy", ""))
    return settings.get("group.protocol") == "consumer" or strategy.startswith("cooperative")


def revoke_patience_s(settings: Mapping[str, Any]) -> float:
    """How long a revoke may take in all: half of the shorter of session and poll interval.

    librdkafka's heartbeats go on meanwhile, but the coordinator waits no longer than one poll
    interval. The other half is for the work before the revoke in the same poll.
    """
    session_ms = int(settings.get("session.timeout.ms", SESSION_TIMEOUT_MS))
    poll_ms = int(settings.get("max.poll.interval.ms", MAX_POLL_INTERVAL_MS))
    return min(session_ms, poll_ms) / 2 / 1000
