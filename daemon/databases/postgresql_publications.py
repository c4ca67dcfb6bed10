"""What PostgreSQL's publications leave out of a table's stream: rows, columns, kinds of change.

The stream's reader names its publications; binlogd knows them by ``database.NAME.publication``, or
takes all that have the table, as long as they agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

PUBLICATIONS = """
SELECT p.pubname::text, p.pubinsert, p.pubupdate, p.pubdelete, to_jsonb(t)->>'attnames',
to_jsonb(t)->>'rowfilter', c.oid = %s::oid
FROM pg_publication p JOIN pg_publication_tables t ON t.pubname = p.pubname
JOIN pg_namespace n ON n.nspname = t.schemaname
JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = t.tablename
WHERE c.oid = %s::oid OR c.oid IN (SELECT relid FROM pg_partition_tree(%s::oid))
ORDER BY 1, c.oid"""
"""By publication its kinds of change, the columns (JSON) and the filter of the table, or those of
its partitions. Three times the table's oid."""

READERS = """
SELECT count(*), count(*) FILTER (WHERE plugin = 'pgoutput') FROM pg_replication_slots
WHERE slot_type = 'logical' AND database = current_database()"""
"""Readers of the database's log, and those that read by publications."""


class Published(NamedTuple):
    """What the stream has of a table: ``rows``, by a condition, and ``columns``, as JSON. None: all
    of them. ``refused``: why it can't be read as the stream has it."""

    rows: str | None = None
    columns: str | None = None
    refused: str | None = None


def published(
    found: Sequence[Sequence[object]], readers: Sequence[object], name: str | None
) -> Published:
    """``found`` and ``readers`` are what the queries gave; ``name`` is the configured publication,
    None where there is none."""
    mine = [row for row in found if name is None or row[0] == name]
    if not mine:
        return Published(refused=_none(readers, name))
    for pub, insert, update, delete, _, _, own in mine:
        lacking = [w for w, has in zip(_KINDS, (insert, update, delete), strict=True) if not has]
        if lacking:
            return Published(
                refused=f"publication {pub} has no {' and no '.join(lacking)}s of it: ALTER "
                f"PUBLICATION {_quoted(pub)} SET (publish = 'insert, update, delete, truncate')"
                f"{_other(name)}"
            )
        if not own:
            return Published(
                refused=f"publication {pub} has its changes under the names of its partitions: "
                f"ALTER PUBLICATION {_quoted(pub)} SET (publish_via_partition_root = true)"
                f"{_other(name)}"
            )
    kinds = {(row[4], row[5]) for row in mine}
    if len(kinds) > 1:
        names = ", ".join(sorted({str(row[0]) for row in mine}))
        return Published(
            refused=f"publications {names} have different rows or columns of it: name the "
            "stream's by `publication` of the database"
        )
    columns, rows = kinds.pop()
    return Published(None if rows is None else str(rows), None if columns is None else str(columns))


_KINDS = ("insert", "update", "delete")


def _none(readers: Sequence[object], name: str | None) -> str | None:
    if name is not None:
        return f"publication {name} does not have it: no change of it would come"
    all_, by_publication = (int(str(count)) for count in readers)
    if all_ and all_ == by_publication:
        return (
            "no publication has it, and all readers of the log read by publications: no change of "
            "it would come; ALTER PUBLICATION … ADD TABLE"
        )
    return None


def _other(name: str | None) -> str:
    return "" if name is not None else "; or name the stream's by `publication` of the database"


def _quoted(name: object) -> str:
    return '"' + str(name).replace('"', '""') + '"'
