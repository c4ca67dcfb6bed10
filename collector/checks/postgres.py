"""What PostgreSQL lacks to be followed: rights, its log, a publication, replica identities.

A table that is published without a replica identity is a danger to the source itself: its own
UPDATE and DELETE are refused from then on. So it is recommended to publish it after it has one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from changes.model.model import TableName
from changes.sql.quoted import quoted
from databases.base.findings import Finding, problem, warning
from databases.base.port import SourceTable, matching
from databases.postgres.checks import of_settings


class Ask(Protocol):
    """``Database.ask``."""

    def __call__(self, sql: str, values: Sequence[str] = ()) -> list[tuple[object, ...]]: ...


PUBLICATION = "binlogd"
"""The recommended name where the configuration has none."""

_KINDS = ("insert", "update", "delete", "truncate")


def sql_name(table: TableName) -> str:
    """A table in a statement."""
    return f"{quoted(table.database, chr(34))}.{quoted(table.table, chr(34))}"


def of_server(ask: Ask, ahead_us: int, slot: str | None) -> Iterator[Finding]:
    """Its version, clock, log, role and places for readers. ``slot``: the collector's own, which
    may be there already."""
    yield from of_settings(ask, ahead_us, logs=True)
    ((standby,),) = ask("SELECT pg_is_in_recovery()")
    if standby:
        yield problem("it is a standby, which has no publications of its own: name the primary")
        return
    yield from _of_rights(ask)
    yield from _of_places(ask, slot)
    yield from _of_kept(ask)


def _of_rights(ask: Ask) -> Iterator[Finding]:
    ((user, may, managed),) = ask(
        "SELECT current_user::text, rolreplication OR rolsuper,"
        " EXISTS (SELECT FROM pg_roles m WHERE m.rolname = 'rds_replication'"
        " AND pg_has_role(current_user, m.oid, 'member'))"
        " FROM pg_roles WHERE rolname = current_user"
    )
    if not (may or managed):
        yield problem(
            f"{user} may not read its log", f"ALTER ROLE {quoted(str(user), chr(34))} REPLICATION"
        )


def _of_places(ask: Ask, slot: str | None) -> Iterator[Finding]:
    """A slot and a sender must be free for the collector, where it has none yet."""
    ((slots, taken, senders, sending),) = ask(
        "SELECT current_setting('max_replication_slots')::int,"
        " (SELECT count(*) FROM pg_replication_slots WHERE slot_name <> %s),"
        " current_setting('max_wal_senders')::int, (SELECT count(*) FROM pg_stat_get_wal_senders()"
        " w LEFT JOIN pg_replication_slots s ON s.active_pid = w.pid"
        " WHERE coalesce(s.slot_name <> %s, true))",
        (slot or "", slot or ""),
    )
    for name, most, used in (
        ("max_replication_slots", slots, taken),
        ("max_wal_senders", senders, sending),
    ):
        if int(str(used)) >= int(str(most)):
            more = int(str(used)) + 4
            yield problem(
                f"{name} is {most}, and all are taken: restart the server after",
                f"ALTER SYSTEM SET {name} = {more}",
            )


def _of_kept(ask: Ask) -> Iterator[Finding]:
    ((most,),) = ask("SELECT current_setting('max_slot_wal_keep_size', true)")
    if most == "-1":
        yield warning(
            "max_slot_wal_keep_size is -1: while a collector is away the server keeps its log "
            "without a bound, and its disk may fill",
            "ALTER SYSTEM SET max_slot_wal_keep_size = '64GB'",
            "SELECT pg_reload_conf()",
        )


# Publications.


def of_publication(ask: Ask, name: str, tables: Sequence[TableName]) -> Iterator[Finding]:
    """Whether it is there and tells all kinds of change; ``tables`` may be published."""
    sign = quoted(name, '"')
    found = ask(
        "SELECT pubinsert, pubupdate, pubdelete, pubtruncate, pubviaroot FROM pg_publication"
        " WHERE pubname = %s",
        (name,),
    )
    if not found:
        listed = ", ".join(map(sql_name, tables))
        if tables:
            yield problem(
                f"there is no publication {name}; who owns the tables makes it",
                f"CREATE PUBLICATION {sign} FOR TABLE {listed}"
                " WITH (publish_via_partition_root = true)",
            )
        return
    *kinds, by_root = found[0]
    if not all(kinds):
        lacking = [kind for kind, has in zip(_KINDS, kinds, strict=True) if not has]
        yield problem(
            f"publication {name} lacks {' and '.join(lacking)}",
            f"ALTER PUBLICATION {sign} SET (publish = '{', '.join(_KINDS)}')",
        )
    if not by_root:
        yield warning(
            f"publication {name} has changes of partitioned tables under their partitions' names",
            f"ALTER PUBLICATION {sign} SET (publish_via_partition_root = true)",
        )


def unpublished(ask: Ask, name: str, tables: Iterable[TableName]) -> Iterator[TableName]:
    """The tables that an existing publication lacks; none where there is no publication."""
    if not ask("SELECT 1 FROM pg_publication WHERE pubname = %s", (name,)):
        return
    rows = ask(
        "SELECT schemaname::text, tablename::text FROM pg_publication_tables WHERE pubname = %s"
        " UNION SELECT n.nspname::text, c.relname::text FROM pg_publication_rel r"
        " JOIN pg_publication p ON p.oid = r.prpubid JOIN pg_class c ON c.oid = r.prrelid"
        " JOIN pg_namespace n ON n.oid = c.relnamespace WHERE p.pubname = %s",
        (name, name),
    )
    there = {TableName(str(schema), str(table)) for schema, table in rows}
    yield from (table for table in tables if table not in there)


def to_be_published(name: str, table: TableName) -> Finding:
    """Of a table that a publication lacks."""
    add = f"ALTER PUBLICATION {quoted(name, chr(34))} ADD TABLE {sql_name(table)}"
    return problem(f"publication {name} does not have {table}: no change of it would come", add)


# Tables.


def of_schemas(patterns: Iterable[str], tables: Sequence[TableName]) -> Iterator[Finding]:
    """Patterns that match no table."""
    for pattern in patterns:
        if not matching(pattern, tables):
            yield problem(f"no table is called {pattern} (SCHEMA.TABLE)")


_STANDING = """
SELECT current_user::text, has_schema_privilege(n.oid, 'USAGE'),
has_table_privilege(c.oid, 'SELECT'), row_security_active(c.oid), c.relpersistence::text
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND c.relname = %s"""

_IDENTITY = """
WITH leaves AS (
  SELECT c.oid, c.relreplident::text AS kind, n.nspname, c.relname
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE c.relkind = 'r' AND c.oid IN (
    SELECT relid FROM pg_partition_tree(%s::regclass) UNION SELECT %s::regclass))
SELECT l.nspname::text, l.relname::text, l.kind,
EXISTS (SELECT FROM pg_index i WHERE i.indrelid = l.oid AND i.indisprimary AND i.indisvalid),
(SELECT x.relname::text FROM pg_index i JOIN pg_class x ON x.oid = i.indexrelid
 WHERE i.indrelid = l.oid AND i.indisunique AND i.indisvalid AND i.indimmediate
 AND i.indpred IS NULL AND i.indexprs IS NULL AND NOT EXISTS (
   SELECT FROM pg_attribute a WHERE a.attrelid = l.oid AND a.attnum = ANY (i.indkey)
   AND NOT a.attnotnull)
 ORDER BY x.relname LIMIT 1),
EXISTS (SELECT FROM pg_index i WHERE i.indrelid = l.oid AND i.indisreplident),
EXISTS (SELECT FROM pg_index k JOIN pg_index i ON i.indrelid = k.indrelid AND i.indisreplident
 WHERE k.indrelid = l.oid AND k.indisprimary AND NOT k.indkey::int2[] <@ i.indkey::int2[])
FROM leaves l ORDER BY 1, 2"""
"""Of a table, or of each of its partitions: its letter, whether it has a primary key, another index
that would do, whether the letter's index is there, and whether that lacks columns of the primary
key. Twice the table's name."""


def of_rights(ask: Ask, table: TableName) -> Iterator[Finding]:
    """What the user lacks to read a table whole."""
    found = ask(_STANDING, table)
    if not found:
        yield problem(f"{table}: no such table")
        return
    user, usage, select, hidden, lasting = found[0]
    role = quoted(str(user), '"')
    if not usage:
        schema = quoted(table.database, '"')
        yield problem(
            f"{user} may not use the schema {table.database}",
            f"GRANT USAGE ON SCHEMA {schema} TO {role}",
        )
    if not select:
        yield problem(
            f"{user} may not read {table}", f"GRANT SELECT ON {sql_name(table)} TO {role}"
        )
    if hidden:
        yield problem(
            f"{table}: its row security hides rows from {user}, which would be taken for deleted",
            f"ALTER ROLE {role} BYPASSRLS",
        )
    if lasting != "p":
        yield problem(
            f"{table} is UNLOGGED, or temporary: no log has its changes",
            f"ALTER TABLE {sql_name(table)} SET LOGGED",
        )


def of_identity(ask: Ask, table: TableName) -> Iterator[Finding]:
    """Whether updates and deletes say which row they mean; else the source refuses them, once the
    table is published. The user may use its schema."""
    name = sql_name(table)
    for schema, leaf, kind, primary, index, marked, lacks in ask(_IDENTITY, (name, name)):
        one = sql_name(TableName(str(schema), str(leaf)))
        if kind == "i" and lacks:
            # Debezium writes 0, or an empty text, in the place of a key that it is not told.
            yield problem(
                f"{schema}.{leaf} has a replica identity without its primary key: its deletes, and"
                " its changes of keys, come as those of other rows",
                f"ALTER TABLE {one} REPLICA IDENTITY DEFAULT",
            )
            continue
        if (kind == "d" and primary) or kind == "f" or (kind == "i" and marked):
            continue
        said = f"{schema}.{leaf} has no replica identity: published, it takes no UPDATE nor DELETE"
        if primary:
            yield problem(said, f"ALTER TABLE {one} REPLICA IDENTITY DEFAULT")
        elif index is not None:
            using = f"USING INDEX {quoted(str(index), chr(34))}"
            yield problem(said, f"ALTER TABLE {one} REPLICA IDENTITY {using}")
        else:
            yield problem(said, f"ALTER TABLE {one} REPLICA IDENTITY FULL")


def of_key(table: SourceTable) -> Iterator[Finding]:
    """A table without a key can't be kept equal."""
    if not table.keys:
        yield problem(
            f"{table.name} has no key: it is left out, as its rows can't be told apart. A key of "
            "its own is better than this",
            f"ALTER TABLE {sql_name(table.name)} ADD COLUMN binlogd_id bigint"
            " GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
        )
