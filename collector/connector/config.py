"""The whole configuration of a connector, as Connect takes it. Pure.

It holds no secret: where one is needed stands a reference to it, which the worker looks up.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from collector.connector.owned import why_owned
from collector.connector.patterns import as_list, routers
from collector.connector.section import CollectorSection
from databases.base.url import Login

Flavor = Literal["mysql", "mariadb", "postgresql", "sqlserver", "oracle", "db2"]
"""What a database is: MySQL and MariaDB are one kind to ``[database.NAME]``, and two connectors."""

CLASSES: Mapping[Flavor, str] = {
    "mysql": "io.debezium.connector.mysql.MySqlConnector",
    "mariadb": "io.debezium.connector.mariadb.MariaDbConnector",
    "postgresql": "io.debezium.connector.postgresql.PostgresConnector",
    "sqlserver": "io.debezium.connector.sqlserver.SqlServerConnector",
    "oracle": "io.debezium.connector.oracle.OracleConnector",
    "db2": "io.debezium.connector.db2.Db2Connector",
}

LARGEST_RECORD = 64 << 20
"""Bytes of one record, with its row before and after: Kafka's own million would stop a stream at
the first long text."""

_CONVERTER = "org.apache.kafka.connect.json.JsonConverter"

_ALL = {
    "tasks.max": "1",
    "exactly.once.support": "required",
    "transaction.boundary": "poll",
    "provide.transaction.metadata": "true",
    "snapshot.mode": "no_data",
    "include.schema.changes": "true",
    "decimal.handling.mode": "precise",
    "tombstones.on.delete": "false",
    "skipped.operations": "none",
    "event.processing.failure.handling.mode": "fail",
    "errors.tolerance": "none",
    "key.converter": _CONVERTER,
    "value.converter": _CONVERTER,
    # With them a record says its columns' types, and batches of records compress well.
    "key.converter.schemas.enable": "true",
    "value.converter.schemas.enable": "true",
    # Without it a column's default stands in the place of a NULL.
    "key.converter.replace.null.with.default": "false",
    "value.converter.replace.null.with.default": "false",
    "topic.creation.default.partitions": "1",
    "topic.creation.default.replication.factor": "-1",
    "topic.creation.default.max.message.bytes": str(LARGEST_RECORD),
    "producer.override.max.request.size": str(LARGEST_RECORD),
    "producer.override.buffer.memory": str(LARGEST_RECORD),
}
"""What must be so."""

_DEFAULTS = {
    "poll.interval.ms": "50",
    "max.batch.size": "4096",
    "max.queue.size": "16384",
    # Rows wait in the worker's memory: it bounds the long ones.
    "max.queue.size.in.bytes": str(32 << 20),
    "producer.override.compression.type": "lz4",
    "producer.override.batch.size": str(256 << 10),
    "producer.override.linger.ms": "5",
    "errors.max.retries": "10",
    "retriable.restart.connector.wait.ms": "5000",
}
"""What ``config`` may change."""

_DEFAULTS_OF: Mapping[Flavor, Mapping[str, str]] = {
    # Reconnected by itself it would read on at a standby that was promoted, before anybody has
    # looked whether that has what was read. A failed task is started again once the source answers.
    "postgresql": {"errors.max.retries": "0"},
}


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a connector needs beside its section.

    ``patterns``: of its tables. ``clients``: the connection's settings of Kafka's clients in Java's
    words, ``references``: secrets by the option that needs each, both for the schema history too.
    ``truststore``: the file of the authorities that vouch for a MySQL or MariaDB.
    """

    name: str
    flavor: Flavor
    login: Login
    patterns: tuple[str, ...]
    clients: Mapping[str, str]
    references: Mapping[str, str]
    publication: str | None = None
    truststore: str | None = None


def topic_of(name: str, section: CollectorSection) -> str:
    """The topic, or what the topics' names begin with."""
    return section.topic or name


def history_topic(name: str, section: CollectorSection) -> str:
    """The topic of the statements that a MySQL's or MariaDB's reader needs to know its tables."""
    return f"binlogd-history-{topic_of(name, section)}"


def pipeline_topics(name: str, section: CollectorSection) -> list[str]:
    """What a pipeline reads of it: topics, or a pattern of them."""
    topic = topic_of(name, section)
    if section.topics == "tables":
        return [topic, rf"^{re.escape(topic)}\..*"]
    return [topic, *(f"{topic}.{group}" for group in section.groups)]


def connector_name(name: str) -> str:
    """As Connect knows it."""
    return f"binlogd-{name}"


def server_id(name: str, section: CollectorSection) -> int:
    """A replica's number, which no other reader of the same server may have.

    The same at each start, and of all collectors of this topic: a second one, which would write the
    same changes twice, takes the first one's place at the server, and both are reported.
    """
    if section.server_id is not None:
        return section.server_id
    digest = hashlib.sha256(f"binlogd {topic_of(name, section)}".encode()).digest()
    return (1 << 30) + int.from_bytes(digest[:4]) % (1 << 30)


def slot_name(name: str, section: CollectorSection) -> str:
    """The replication slot of PostgreSQL."""
    return section.slot or plain_name(topic_of(name, section))


def plain_name(text: str) -> str:
    """A name of small letters, digits and ``_``; two that differ stay two."""
    plain = re.sub(r"[^a-z0-9_]", "_", text)
    if plain != text or len(plain) > 50:
        plain = f"{plain[:44]}_{hashlib.sha256(text.encode()).hexdigest()[:6]}"
    return f"binlogd_{plain}"


def connector_config(section: CollectorSection, around: Surroundings) -> dict[str, str]:
    """The connector's options, all of them."""
    topic = topic_of(around.name, section)
    own = {
        **_ALL,
        "name": connector_name(around.name),
        "connector.class": CLASSES[around.flavor],
        "topic.prefix": topic,
        "heartbeat.interval.ms": str(round(section.heartbeat_s * 1000)),
        "database.hostname": around.login.host,
        "database.port": str(around.login.port),
        "database.user": around.login.user or "",
        "database.password": around.references.get("database.password", ""),
    }
    if section.topics != "tables":
        own |= routers(topic, section.groups)
    if (tables := as_list(section.tables or around.patterns)) is not None:
        own["table.include.list"] = tables
    if section.heartbeat_statement is not None:
        own["heartbeat.action.query"] = section.heartbeat_statement
    own |= _OF[around.flavor](section, around)
    given = {name: _text(value) for name, value in section.config.items()}
    others = {n: r for n, r in around.references.items() if why_owned(n) is None}
    defaults = {**_DEFAULTS, **_DEFAULTS_OF.get(around.flavor, {})}
    return {**defaults, **given, **others, **own}


def _text(value: str | int | float | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _history(section: CollectorSection, around: Surroundings) -> dict[str, str]:
    """The statements that made the tables, in a topic that keeps all of them."""
    at = "schema.history.internal"
    found = {
        at: "io.debezium.storage.kafka.history.KafkaSchemaHistory",
        f"{at}.kafka.topic": history_topic(around.name, section),
        f"{at}.kafka.bootstrap.servers": around.clients.get("bootstrap.servers", ""),
        # All tables': a pattern that takes more of them later finds theirs.
        f"{at}.store.only.captured.tables.ddl": "false",
        f"{at}.skip.unparseable.ddl": "false",
    }
    for client in ("producer", "consumer"):
        for name, value in around.clients.items():
            if name != "bootstrap.servers":
                option = f"{at}.{client}.{name}"
                found[option] = around.references.get(option, value)
    return found


def _mysql(section: CollectorSection, around: Surroundings) -> dict[str, str]:
    modes = {"off": "disabled", "preferred": "preferred", "required": "required",
             "ca": "verify_ca", "verified": "verify_identity"}  # fmt: skip
    found = _binlog(section, around) | {"database.ssl.mode": modes[around.login.tls]}
    if around.login.tls == "off":
        # MySQL's passwords are sent by its own key then.
        found["driver.allowPublicKeyRetrieval"] = "true"
    return found


def _mariadb(section: CollectorSection, around: Surroundings) -> dict[str, str]:
    modes = {"off": "disable", "preferred": "trust", "required": "trust",
             "ca": "verify-ca", "verified": "verify-full"}  # fmt: skip
    return _binlog(section, around) | {"database.ssl.mode": modes[around.login.tls]}


def _binlog(section: CollectorSection, around: Surroundings) -> dict[str, str]:
    found = {
        "database.server.id": str(server_id(around.name, section)),
        "bigint.unsigned.handling.mode": "precise",
        "time.precision.mode": "adaptive_time_microseconds",
        **_history(section, around),
    }
    if around.truststore is not None and around.login.tls in ("ca", "verified"):
        found["database.ssl.truststore"] = around.truststore
        found["database.ssl.truststore.password"] = "changeit"
    return found


def _postgresql(section: CollectorSection, around: Surroundings) -> dict[str, str]:
    modes = {"off": "disable", "preferred": "prefer", "required": "require",
             "ca": "verify-ca", "verified": "verify-full"}  # fmt: skip
    found = {
        "database.dbname": around.login.database,
        "database.sslmode": modes[around.login.tls],
        "plugin.name": "pgoutput",
        "slot.name": slot_name(around.name, section),
        "slot.drop.on.stop": "false",
        # Where the server has it, a standby that takes over has the slot, too.
        "slot.failover": "true",
        # A slot that somebody recreated is ahead of the position: changes between them are lost.
        "offset.mismatch.strategy": "trust_offset",
        "lsn.flush.mode": "connector",
        "publication.name": publication_of(around.name, section, around.publication),
        # Where none is named, binlogd makes it, and has tables join it as they come.
        "publication.autocreate.mode": "disabled",
        "time.precision.mode": "adaptive",
        "slot.retry.delay.ms": "2000",
    }
    if around.login.tls_ca and around.login.tls in ("ca", "verified"):
        found["database.sslrootcert"] = around.login.tls_ca
    if section.heartbeat_statement is None:
        # Else a quiet database beside a busy one would keep the log of both.
        found["heartbeat.action.query"] = HEARTBEAT
    return found


HEARTBEAT = "SELECT pg_logical_emit_message(true, 'binlogd', 'heartbeat')"
"""Writes a word into PostgreSQL's log, and no table."""


def publication_of(name: str, section: CollectorSection, publication: str | None) -> str:
    """The publication that is read: the configured one, or one that the collector keeps."""
    return publication or plain_name(topic_of(name, section))


def _others(section: CollectorSection, around: Surroundings) -> dict[str, str]:
    found = dict(_history(section, around))
    name = "database.names" if around.flavor == "sqlserver" else "database.dbname"
    return found | {name: around.login.database}


_OF = {
    "mysql": _mysql, "mariadb": _mariadb, "postgresql": _postgresql,
    "sqlserver": _others, "oracle": _others, "db2": _others,
}  # fmt: skip
