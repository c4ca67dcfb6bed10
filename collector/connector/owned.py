"""The options of a connector that binlogd sets: what would be lost if somebody else set them. Pure.

``[collector.NAME] config`` may have any other option of Debezium's.
"""

from __future__ import annotations

_BY = {
    "name": "it is the collector's name",
    "connector.class": "the database decides it",
    "tasks.max": "one log is read by one task",
    "exactly.once.support": "exactly once rests on it",
    "transaction.boundary": "exactly once rests on it",
    "transaction.boundary.interval.ms": "exactly once rests on it",
    "offsets.storage.topic": "the position is in the worker's own topic",
    "topic.prefix": "topic decides it",
    "topic.delimiter": "topics are recognised by it",
    "topic.naming.strategy": "topics decides the names",
    "topic.heartbeat.prefix": "topics decides the names",
    "topic.transaction": "topics decides the names",
    "provide.transaction.metadata": "boundaries of transactions are read",
    "snapshot.mode": "rows are read by tables load, and the log from its position",
    "snapshot.mode.configuration.based.snapshot.data": "rows are read by tables load",
    "include.schema.changes": "statements are followed",
    "tombstones.on.delete": "the format's reader expects it",
    "decimal.handling.mode": "values are exact",
    "bigint.unsigned.handling.mode": "values are exact",
    "time.precision.mode": "values are exact",
    "binary.handling.mode": "values are exact",
    "interval.handling.mode": "values are exact",
    "hstore.handling.mode": "values are exact",
    "unavailable.value.placeholder": "the format's reader knows it",
    "schema.name.adjustment.mode": "names are the source's",
    "field.name.adjustment.mode": "names are the source's",
    "skipped.operations": "every change is read, TRUNCATE as well",
    "event.processing.failure.handling.mode": "what can't be read stops it, and is not left out",
    "inconsistent.schema.handling.mode": "what can't be read stops it, and is not left out",
    "event.deserialization.failure.handling.mode": "what can't be read stops it",
    "schema.history.internal.skip.unparseable.ddl": "a statement that is left out shifts columns",
    "errors.tolerance": "what can't be read stops it, and is not left out",
    "heartbeat.interval.ms": "heartbeat_s decides it",
    "heartbeat.action.query": "heartbeat_statement decides it",
    "table.include.list": "tables decides it",
    "table.exclude.list": "tables decides it",
    "database.include.list": "tables decides it",
    "database.exclude.list": "tables decides it",
    "schema.include.list": "tables decides it",
    "schema.exclude.list": "tables decides it",
    "column.include.list": "rows are whole; routes leave columns out",
    "column.exclude.list": "rows are whole; routes leave columns out",
    "message.key.columns": "keys are the table's",
    "slot.name": "slot decides it",
    "slot.drop.on.stop": "the position would go with it",
    "slot.failover": "set where the server has it",
    "offset.mismatch.strategy": "a slot that was recreated would lose changes silently",
    "slot.seek.to.known.offset.on.start": "a slot that was recreated would lose changes",
    "lsn.flush.mode": "the slot must never be ahead of the position",
    "flush.lsn.source": "the slot must never be ahead of the position",
    "publication.name": "[database.NAME] publication decides it",
    "publication.autocreate.mode": "[database.NAME] publication decides it",
    "publish.via.partition.root": "changes come under the table's own name",
    "plugin.name": "pgoutput is the one that is read",
    "log.position.check.enable": "a position that is gone must be seen",
    "gtid.source.filter.dml.events": "transactions would be left out",
    "gtid.ignore.on.recovery": "a position is by GTIDs where the server has them",
    "predicates": "every record is read",
    "transforms": "topics decides it",
    "post.processors": "records are the source's",
    "producer.override.max.request.size": "the topics take 64 MiB",
    "producer.override.buffer.memory": "the largest record must fit",
    "custom.metric.tags": "metrics are the worker's",
}
_BELOW = {
    "database.": "[database.NAME] decides it",
    "transforms.": "topics decides it",
    "predicates.": "every record is read",
    "key.converter": "the pipeline's format decides it",
    "value.converter": "the pipeline's format decides it",
    "header.converter": "the pipeline's format decides it",
    "schema.history.internal": "the history is in a topic of its own, which keeps everything",
    "topic.creation.": "a topic has one partition, so that its records keep their order",
    "producer.override.transaction": "exactly once rests on it",
    "producer.override.enable.idempotence": "exactly once rests on it",
    "producer.override.acks": "exactly once rests on it",
    "producer.override.sasl": "[kafka] decides it",
    "producer.override.ssl": "[kafka] decides it",
    "producer.override.security": "[kafka] decides it",
    "producer.override.bootstrap": "[kafka] decides it",
    "signal.": "tables are loaded by tables load",
    "incremental.snapshot.": "tables are loaded by tables load",
    "snapshot.select.statement.overrides": "tables are loaded by tables load",
    "datatype.propagate.": "the format's reader expects it",
}
_FREE = (
    "database.connectionTimeZone", "database.initial.statements", "database.server.id.offset",
    "database.query.timeout.ms", "database.tcpKeepAlive", "database.encrypt",
    "database.trustServerCertificate", "database.applicationIntent", "database.pdb.name",
    "database.connection.adapter", 
    "schema.history.internal.store.only.captured.databases.ddl",
    "schema.history.internal.kafka.query.timeout.ms",
    "schema.history.internal.kafka.recovery.poll.interval.ms",
    "schema.history.internal.kafka.recovery.attempts",
)  # fmt: skip
"""Below one of these, and nobody's loss."""


def why_owned(option: str) -> str | None:
    """Why an option can't be set by hand; None where it can."""
    if option in _FREE:
        return None
    if option in _BY:
        return _BY[option]
    return next((why for start, why in _BELOW.items() if option.startswith(start)), None)
