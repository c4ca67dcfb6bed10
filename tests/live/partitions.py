"""A seed's topic of several partitions: which record goes where, and what its stream leaves unsaid.

Partitions have no order between them. So a table is in one of them, or its rows carry positions of
the source's log; and statements, which a connector writes into the first partition, are in none.
Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from tests.live.mariadb_kinds import KINDS


class Routing(Enum):
    """What chooses a record's partition."""

    ONE = "there is one"
    BY_TABLE = "its table"
    BY_KEY = "its key"
    OWN_TOPIC = "its key, in a topic of its table's own"


def routing(
    seed: int, partitions: int, tells_statements: bool, sink: str, *, is_json: bool = True
) -> Routing:
    """Of a seed. ``tells_statements``: MariaDB, whose positions don't compare between servers."""
    if partitions == 1:
        return Routing.ONE
    # SQLite has one writer.
    if sink != "file" and (not is_json or seed // 4 % 3 == 1):
        return Routing.OWN_TOPIC
    # Other sinks than the lake keep no positions.
    by_key = sink == "lake" and not tells_statements and seed // 2 % 2 == 0
    return Routing.BY_KEY if by_key else Routing.BY_TABLE


def of_connector(how: Routing, partitions: int) -> Mapping[str, str]:
    """Further settings of a connector of Debezium."""
    if how is Routing.ONE:
        return {}
    if how is Routing.BY_KEY:  # as Kafka's producer does by itself
        return {"include.schema.changes": "false"}
    if how is Routing.OWN_TOPIC:  # Debezium's own way
        return {
            "transforms": "",
            "include.schema.changes": "false",
            **made_by_connect(partitions),
        }
    kind = "io.debezium.transforms.partitions.PartitionRouting"
    return {
        "transforms": "one,apart", "transforms.apart.type": kind,
        "transforms.apart.partition.payload.fields": "source.schema,source.db,source.table",
        "transforms.apart.partition.topic.num": str(partitions),
        "transforms.apart.partition.hash.function": "java",
        "include.schema.changes": "false",
        "tombstones.on.delete": "false",  # they would go by their key
    }  # fmt: skip


def made_by_connect(partitions: int) -> Mapping[str, str]:
    """Settings of a connector whose topics are not there beforehand."""
    made = "topic.creation.default"
    return {f"{made}.partitions": str(partitions), f"{made}.replication.factor": "1"}


def left_out(how: Routing, tells_statements: bool) -> Mapping[str, str]:
    """Kinds of steps of which such a stream can't tell, and why."""
    if how is Routing.ONE:
        return {}
    # Debezium's record of it has neither a key nor a row, so it goes to any partition.
    found = {"truncate": "it has no order with rows: the target is refused, by name"}
    if tells_statements:
        others = [maker.__name__ for maker in KINDS if maker.__name__ not in _READ]
        found |= dict.fromkeys(others, "statements are left out: they have no order with rows")
    return found


_READ = ("rows", "create", "copied", "harmless")
"""Kinds of MariaDB's that are in the rows as well."""
