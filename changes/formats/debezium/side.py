"""Recognises records of Debezium's side topics: transactions, heartbeats, notifications."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Raw

from changes.decoding.layout import Refused

_TIMES = frozenset(("ts_ms", "ts_us", "ts_ns"))
_TRANSACTION = frozenset(("status", "id", "event_count"))
_NOTIFICATION = frozenset(("id", "aggregate_type", "type", "additional_data"))
_CLOUD_EVENT = frozenset(("id", "source", "specversion", "data"))
_OURS = "io.debezium."
"""Begins the names of their schemas; those of rows begin with the connector's topic prefix."""


def side_topic(found: Mapping[str, Raw], schema_name: str | None) -> str | None:
    """The kind of a side topic's record, None where it may be a row.

    A row's columns may have the same names: so it must have no other members than the known ones,
    and its schema must not be a row's. Raises Refused for a CloudEvents record.
    """
    names = found.keys()
    if names >= _CLOUD_EVENT:
        raise Refused("a CloudEvents record, which is not read; use JsonConverter")
    if schema_name is not None and not schema_name.startswith(_OURS):
        return None
    if _TRANSACTION <= names <= _TRANSACTION | _TIMES | {"data_collections"}:
        return "transaction" if bytes(found["status"]) in (b'"BEGIN"', b'"END"') else None
    if names & _TIMES and names <= _TIMES | {"serverName"}:
        return "heartbeat"
    if _NOTIFICATION <= names <= _NOTIFICATION | {"timestamp"}:
        return "notification"
    return None
