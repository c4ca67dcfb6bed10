"""The publication of PostgreSQL that a collector reads: it has each table that matches, whole.

A table that joins late was written to before that, and its log does not tell it. So a table joins
under a lock that waits for its writers: what they wrote is there to be read once it has joined, and
all later changes come.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from changes.model.model import TableName
from changes.sql.quoted import quoted
from collector.checks.postgres import (
    of_identity,
    of_publication,
    sql_name,
    to_be_published,
    unpublished,
)
from databases.base.database import Database
from databases.base.errors import DatabaseError

_LOCK_WITHIN_MS = 300
"""The table's writers wait as long behind this lock: another round tries again."""


def lacking(database: Database, name: str, patterns: Iterable[str]) -> list[TableName]:
    """The tables that match and that the publication does not have. Raises DatabaseAway,
    DatabaseRefused."""
    found = {table: None for pattern in patterns for table in database.tables(pattern)}
    return list(unpublished(database.ask, name, found))


def lacking_lines(database: Database, name: str, patterns: Sequence[str]) -> dict[str, str]:
    """Of a publication that is somebody else's: what it lacks, by table, and the statement."""
    kinds = [one.line for one in of_publication(database.ask, name, ()) if one.wrong]
    sign = quoted(name, '"')
    return (
        ({"": "; ".join(kinds)} if kinds else {})
        | {str(one): to_be_published(name, one).line for one in lacking(database, name, patterns)}
        | {
            str(one): f"publication {name} has a part of {one} alone: ALTER PUBLICATION {sign} DROP"
            f" TABLE {sql_name(one)}; ALTER PUBLICATION {sign} ADD TABLE {sql_name(one)}"
            for one in _partial(database, name, patterns)
        }
    )


def without_keys(database: Database, patterns: Iterable[str]) -> dict[str, str]:
    """The tables that match whose log does not say which row is meant, and the statement."""
    rows = database.ask(_BY_INDEX)
    found = {TableName(str(schema), str(table)) for schema, table in rows}
    if not found:
        return {}
    matching = found & {table for pattern in patterns for table in database.tables(pattern)}
    told = {str(one): [each.line for each in of_identity(database.ask, one)] for one in matching}
    return {table: "; ".join(lines) for table, lines in told.items() if lines}


_BY_INDEX = """
SELECT DISTINCT n.nspname::text, r.relname::text FROM pg_class c
JOIN pg_class r ON r.oid = coalesce(pg_partition_root(c.oid), c.oid)
JOIN pg_namespace n ON n.oid = r.relnamespace WHERE c.relkind = 'r' AND c.relreplident = 'i'"""


def _partial(database: Database, name: str, patterns: Iterable[str]) -> list[TableName]:
    """The tables that match of which the publication has some rows or columns alone."""
    rows = database.ask(_PARTIAL, (name,))
    found = {TableName(str(schema), str(table)) for schema, table in rows}
    if not found:
        return []
    return sorted(found & {table for pattern in patterns for table in database.tables(pattern)})


_PARTIAL = """
SELECT n.nspname::text, c.relname::text FROM pg_publication_rel r
JOIN pg_publication p ON p.oid = r.prpubid JOIN pg_class c ON c.oid = r.prrelid
JOIN pg_namespace n ON n.oid = c.relnamespace WHERE p.pubname = %s
AND coalesce(to_jsonb(r)->>'prqual', to_jsonb(r)->>'prattrs') IS NOT NULL"""
_WHOLE = """
SELECT pubinsert AND pubupdate AND pubdelete AND pubtruncate AND pubviaroot FROM pg_publication
WHERE pubname = %s"""
_ALL = "publish = 'insert, update, delete, truncate', publish_via_partition_root = true"


def keep(
    database: Database,
    name: str,
    patterns: Sequence[str],
    late: Callable[[Sequence[str]], None] | None,
) -> dict[str, str]:
    """Have the collector's own one, with all tables that match; why each that lacks, lacks.

    One that somebody has cut down, to some kinds of change, rows or columns, is whole again: its
    tables join anew. ``late`` is called with the tables that will join, before they do, where
    changes are read already; None: nothing is read yet. Raises DatabaseAway, DatabaseRefused.
    """
    sign = quoted(name, '"')
    again = _partial(database, name, patterns)
    if not (found := database.ask(_WHOLE, (name,))):
        database.change(f"CREATE PUBLICATION {sign} WITH (publish_via_partition_root = true)")
    elif not found[0][0]:
        every = {table for pattern in patterns for table in database.tables(pattern)}
        again = sorted(every - set(lacking(database, name, patterns)))
        if late is not None:
            late([str(table) for table in again])
        database.change(f"ALTER PUBLICATION {sign} SET ({_ALL})")
    refused: dict[str, str] = {}
    joining, leaving = list(again), set(again)
    for table in lacking(database, name, patterns):
        # Published without one, the source itself refuses its UPDATE and DELETE.
        if lines := [each.line for each in of_identity(database.ask, table)]:
            refused[str(table)] = "; ".join(lines)
        else:
            joining.append(table)
    if joining and late is not None:
        late([str(table) for table in joining])
    return refused | dict(_added(database, sign, joining, leaving, late is not None))


def _added(
    database: Database,
    sign: str,
    tables: Iterable[TableName],
    leaving: Collection[TableName],
    waits: bool,
) -> Iterator[tuple[str, str]]:
    """Each by itself: what one lacks keeps no other out. ``leaving``: those that are there."""
    for table in tables:
        one = sql_name(table)
        leave = f"ALTER PUBLICATION {sign} DROP TABLE {one}; " if table in leaving else ""
        lock = f"; LOCK TABLE {one} IN SHARE ROW EXCLUSIVE MODE" if waits else ""
        try:
            database.change(
                f"SET LOCAL lock_timeout = {_LOCK_WITHIN_MS}; {leave}"
                f"ALTER PUBLICATION {sign} ADD TABLE {one}{lock}"
            )
        except DatabaseError as error:
            yield str(table), f"{table} does not join the publication: {error}"
