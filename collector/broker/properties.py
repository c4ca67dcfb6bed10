"""The broker's settings, as Kafka's file of properties has them. Pure."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from actors.runtime.programs import HOST

USER = "binlogd"
MECHANISM = "SCRAM-SHA-256"
"""For clients: neither side tells the other the secret. With PLAIN, a process that takes the port
while the broker is down would get it from the first client that comes."""

LARGEST_RECORD = 64 << 20
"""Bytes of a record. Kafka's 1 MB is less than a row may have."""

_LARGEST_SEGMENT = 256 << 20
"""Bytes of a file of the log. After a kill Kafka reads the newest again before it starts."""


@dataclass(frozen=True, slots=True)
class BrokerSecrets:
    """What lets a client in, and the broker's own controller: two secrets of letters and digits."""

    client: str
    controller: str


def new_cluster_id() -> str:
    """One of nobody's. None begins with a dash, as one of 64 would: Kafka's tool takes that for an
    option."""
    return base64.urlsafe_b64encode(bytes([0]) + secrets.token_bytes(15)).decode().rstrip("=")


@dataclass(frozen=True, slots=True)
class BrokerSettings:
    """A broker's settings. ``login`` None lets everybody on this machine in: for tests alone.

    ``heap``: options of its JVM about memory. ``more``: further properties. ``cluster_id``: 22
    characters of base64, by which clients tell one log from another; each new one has its own.
    """

    login: BrokerSecrets | None = None
    heap: tuple[str, ...] = ("-Xms128m", "-Xmx512m", "-Xmn64m")
    more: Mapping[str, str] = field(default_factory=dict)
    cluster_id: str = field(default_factory=new_cluster_id)


def bounded(max_bytes: int, max_age_s: float) -> dict[str, str]:
    """What keeps each partition within so many bytes, and its records no longer than that.

    Whole files are removed, so each is a small share of either.
    """
    age_ms = round(max_age_s * 1000)
    return {
        "log.retention.bytes": str(max_bytes),
        "log.retention.ms": str(age_ms),
        "log.segment.bytes": str(min(_LARGEST_SEGMENT, max_bytes // 8)),
        "log.roll.ms": str(age_ms // 8),
        "log.retention.check.interval.ms": "60000",
    }


def durable() -> dict[str, str]:
    """What makes a record durable before anybody sees it, its producer's answer included.

    A position (in the daemon's file, in a sink, in the broker's own topic) is made of a record that
    was read, so after a power cut none is above the log's end. Kafka's default leaves both to the
    kernel, in any order.
    """
    return {"log.flush.interval.messages": "1"}


def properties(settings: BrokerSettings, logs: Path, port: int, controller: int) -> dict[str, str]:
    """All properties of a broker whose data is in ``logs``, at these ports of the loopback."""
    protocol = "PLAINTEXT" if settings.login is None else "SASL_PLAINTEXT"
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@{HOST}:{controller}",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "CLIENT",
        "listeners": f"CLIENT://{HOST}:{port},CONTROLLER://{HOST}:{controller}",
        "advertised.listeners": f"CLIENT://{HOST}:{port}",
        "listener.security.protocol.map": f"CLIENT:{protocol},CONTROLLER:{protocol}",
        "log.dirs": str(logs),
        **_COMMON,
        **({} if settings.login is None else _logins(settings.login)),
        **settings.more,
    }


# One partition of a kind is enough for one node. Two are for speed: after a kill the new broker is
# let in when the old one's session has run out (Kafka's 9 s made a restart take 15 s; much lower,
# and a busy machine fences a live one), and groups start at once.
_COMMON = {
    "auto.create.topics.enable": "false",
    "delete.topic.enable": "true",
    "num.partitions": "1",
    "default.replication.factor": "1",
    "min.insync.replicas": "1",
    "offsets.topic.num.partitions": "4",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "4",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    "broker.heartbeat.interval.ms": "500",
    "broker.session.timeout.ms": "4000",
    "log.retention.ms": "-1",
    "log.cleaner.dedupe.buffer.size": "33554432",
    "num.network.threads": "2",
    "num.io.threads": "4",
    "message.max.bytes": str(LARGEST_RECORD),
    # Kafka refuses a record whose time is an hour ahead of its own clock, so a clock that is set
    # back would stop the collector.
    "log.message.timestamp.after.max.ms": str(2**63 - 1),
}


def _logins(login: BrokerSecrets) -> dict[str, str]:
    """Who may enter where: clients as USER, the broker itself at its controller.

    The controller has a secret of its own by PLAIN: Kafka keeps the users of SCRAM in the log that
    the controller serves. Only this process connects there, once it has that port itself.
    """
    scram = "org.apache.kafka.common.security.scram.ScramLoginModule"
    plain = "org.apache.kafka.common.security.plain.PlainLoginModule"
    return {
        "sasl.mechanism.inter.broker.protocol": MECHANISM,
        "sasl.mechanism.controller.protocol": "PLAIN",
        "listener.name.client.sasl.enabled.mechanisms": MECHANISM,
        "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
        f"listener.name.client.{MECHANISM.lower()}.sasl.jaas.config": (
            f'{scram} required username="{USER}" password="{login.client}";'
        ),
        "listener.name.controller.plain.sasl.jaas.config": (
            f'{plain} required username="{USER}" password="{login.controller}" '
            f'user_{USER}="{login.controller}";'
        ),
    }
