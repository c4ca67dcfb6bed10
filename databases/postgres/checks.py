"""What PostgreSQL must be set to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from changes.sql.quoted import quoted
from databases.base.findings import Finding, of_clock, problem, warning
from databases.base.section import DatabaseSection

Ask = Callable[[str], list[tuple[object, ...]]]

_OLDEST = 130000
"""Of ``server_version_num``: older ones lack functions that canonical texts need."""

TABLE = """
SELECT c.oid::text, c.relkind::text, c.reltuples::bigint, pg_table_size(c.oid)::bigint,
coalesce(leaves.rewritten, c.relfilenode::text), c.relpersistence::text,
row_security_active(c.oid), leaves.unlogged
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN LATERAL (
  SELECT string_agg(l.oid || ':' || l.relfilenode, ',' ORDER BY l.oid)
  FILTER (WHERE l.relfilenode <> l.oid) AS rewritten,
  min(s.nspname || '.' || l.relname)
  FILTER (WHERE l.relkind = 'f' OR l.relpersistence <> 'p') AS unlogged
  FROM pg_partition_tree(c.oid) t JOIN pg_class l ON l.oid = t.relid
  JOIN pg_namespace s ON s.oid = l.relnamespace WHERE t.isleaf
) leaves ON c.relkind = 'p'
WHERE n.nspname = %s AND c.relname = %s"""
"""The fifth is another one after TRUNCATE, which readers of the log may leave out. A partition that
is new has its own number there: that one comes is no such thing."""


def grant(user: str) -> str:
    """The statement that gives the right to read a schema."""
    name = quoted(user, '"')
    return f"GRANT USAGE ON SCHEMA … TO {name}; GRANT SELECT ON ALL TABLES IN SCHEMA … TO {name}"


def unread(persistence: object, hidden: object, user: str, partition: object = None) -> str | None:
    """Why a table's rows are not all read, or not those of the stream; None where they are.

    ``persistence`` is the catalog's letter; ``hidden``: a policy of the table holds for the user;
    ``partition``: one that is UNLOGGED or a foreign table.
    """
    if hidden:
        name = quoted(user, '"')
        return (
            f"its row security hides rows from {user}, and rows that are not seen would be taken"
            f" for deleted ones; ALTER ROLE {name} BYPASSRLS"
        )
    if persistence != "p":
        return "it is UNLOGGED, or temporary: the stream has no change of it; SET LOGGED"
    if partition is not None:
        return (
            f"its partition {partition} is UNLOGGED or a foreign table: the stream has no change of"
            " its rows; SET LOGGED, or DETACH it"
        )
    return None


def of_server(ask: Ask, section: DatabaseSection, ahead_us: int) -> Iterator[Finding]:
    """The server's version, log, role, encoding and clock."""
    yield from of_settings(ask, ahead_us, logs=section.role == "primary")
    ((replica,),) = ask("SELECT pg_is_in_recovery()")
    if replica and section.role == "primary":
        yield problem('role is "primary", but it is a standby: role = "replica"')
    if not replica and section.role == "replica":
        yield problem('role is "replica", but it is no standby: role = "primary"')


def of_settings(ask: Ask, ahead_us: int, *, logs: bool) -> Iterator[Finding]:
    """The server's version, encoding and clock, and, where the stream is its own, its log."""
    ((version, level, encoding),) = ask(
        "SELECT current_setting('server_version_num')::int, current_setting('wal_level'),"
        " current_setting('server_encoding')"
    )
    if int(str(version)) < _OLDEST:
        yield problem("PostgreSQL 13 or newer is required")
    yield from of_clock(ahead_us)
    if level != "logical" and logs:
        yield problem(
            f"wal_level is {level}, and the stream needs logical: restart the server after",
            "ALTER SYSTEM SET wal_level = 'logical'",
        )
    if encoding == "SQL_ASCII":
        yield warning("its encoding is SQL_ASCII: texts that are not UTF-8 can't be read")


# What PostgreSQL's publications leave out of a table's stream: rows, columns, kinds of change.

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


class PublishedTable(NamedTuple):
    """What the stream has of a table: ``rows``, by a condition, and ``columns``, as JSON. None: all
    of them. ``refused``: why it can't be read as the stream has it."""

    rows: str | None = None
    columns: str | None = None
    refused: str | None = None


def published(
    found: Sequence[Sequence[object]], readers: Sequence[object], name: str | None
) -> PublishedTable:
    """``found`` and ``readers`` are what the queries gave; ``name`` is the configured publication,
    None where there is none."""
    mine = [row for row in found if name is None or row[0] == name]
    if not mine:
        return PublishedTable(refused=_none(readers, name))
    for pub, insert, update, delete, _, _, own in mine:
        named = quoted(str(pub), '"')
        lacking = [w for w, has in zip(_KINDS, (insert, update, delete), strict=True) if not has]
        if lacking:
            return PublishedTable(
                refused=f"publication {pub} has no {' and no '.join(lacking)}s of it: ALTER "
                f"PUBLICATION {named} SET (publish = 'insert, update, delete, truncate')"
                f"{_other(name)}"
            )
        if not own:
            return PublishedTable(
                refused=f"publication {pub} has its changes under the names of its partitions: "
                f"ALTER PUBLICATION {named} SET (publish_via_partition_root = true)"
                f"{_other(name)}"
            )
    kinds = {(row[4], row[5]) for row in mine}
    if len(kinds) > 1:
        names = ", ".join(sorted({str(row[0]) for row in mine}))
        return PublishedTable(
            refused=f"publications {names} have different rows or columns of it: name the "
            "stream's by `publication` of the database"
        )
    columns, rows = kinds.pop()
    return PublishedTable(
        None if rows is None else str(rows), None if columns is None else str(columns)
    )


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
