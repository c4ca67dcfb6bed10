"""What PostgreSQL must be set to."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from daemon.databases.findings import Finding, of_clock, problem, warning
from daemon.databases.sections import DatabaseSection

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
    name = '"' + user.replace('"', '""') + '"'
    return f"GRANT USAGE ON SCHEMA … TO {name}; GRANT SELECT ON ALL TABLES IN SCHEMA … TO {name}"


def unread(persistence: object, hidden: object, user: str, partition: object = None) -> str | None:
    """Why a table's rows are not all read, or not those of the stream; None where they are.

    ``persistence`` is the catalog's letter; ``hidden``: a policy of the table holds for the user;
    ``partition``: one that is UNLOGGED or a foreign table.
    """
    if hidden:
        name = '"' + user.replace('"', '""') + '"'
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
    ((version, level, encoding, replica),) = ask(
        "SELECT current_setting('server_version_num')::int, current_setting('wal_level'),"
        " current_setting('server_encoding'), pg_is_in_recovery()"
    )
    if int(str(version)) < _OLDEST:
        yield problem("PostgreSQL 13 or newer is wanted")
    yield from of_clock(ahead_us)
    if level != "logical" and section.role == "primary":
        yield problem(
            f"wal_level is {level}, and the stream needs logical;"
            " ALTER SYSTEM SET wal_level = 'logical', then restart it"
        )
    if encoding == "SQL_ASCII":
        yield warning("its encoding is SQL_ASCII: texts that are not UTF-8 can't be read")
    if replica and section.role == "primary":
        yield problem('role is "primary", but it is a standby: role = "replica"')
    if not replica and section.role == "replica":
        yield problem('role is "replica", but it is no standby: role = "primary"')
