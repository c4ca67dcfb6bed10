"""The publication of PostgreSQL that a collector reads: it has each table that matches.

A table that joins late was written to before that, and its log does not tell it. So a table joins
under a lock that waits for its writers: what they wrote is there to be read once it has joined, and
all later changes come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from changes.model.model import TableName
from changes.sql.quoted import quoted
from collector.checks.postgres import of_identity, sql_name, to_be_published, unpublished
from databases.base.database import Database
from databases.base.errors import DatabaseError

_LOCK_WITHIN_MS = 300
"""The table's writers wait as long behind this lock: another round tries again."""


def lacking(database: Database, name: str, patterns: Iterable[str]) -> list[TableName]:
    """The tables that match and that the publication does not have. Raises DatabaseAway,
    DatabaseRefused."""
    found = {table: None for pattern in patterns for table in database.tables(pattern)}
    return list(unpublished(database.ask, name, found))


def lacking_lines(database: Database, name: str, patterns: Iterable[str]) -> dict[str, str]:
    """Of a publication that is somebody else's: what it lacks, by table, and the statement."""
    return {
        str(table): to_be_published(name, table).line for table in lacking(database, name, patterns)
    }


def keep(
    database: Database,
    name: str,
    patterns: Iterable[str],
    late: Callable[[Sequence[str]], None] | None,
) -> dict[str, str]:
    """Have the collector's own one, with all tables that match; why each that lacks, lacks.

    ``late`` is called with the tables that will join, before they do, where changes are read
    already; None: nothing is read yet. Raises DatabaseAway, DatabaseRefused.
    """
    sign = quoted(name, '"')
    if not database.ask("SELECT 1 FROM pg_publication WHERE pubname = %s", (name,)):
        database.change(f"CREATE PUBLICATION {sign} WITH (publish_via_partition_root = true)")
    refused: dict[str, str] = {}
    joining: list[TableName] = []
    for table in lacking(database, name, patterns):
        # Published without one, the source itself refuses its UPDATE and DELETE.
        if lines := [each.line for each in of_identity(database.ask, table)]:
            refused[str(table)] = "; ".join(lines)
        else:
            joining.append(table)
    if joining and late is not None:
        late([str(table) for table in joining])
    return refused | dict(_added(database, sign, joining, late is not None))


def _added(
    database: Database, sign: str, tables: Iterable[TableName], waits: bool
) -> Iterator[tuple[str, str]]:
    """Each by itself: what one lacks keeps no other out."""
    for table in tables:
        one = sql_name(table)
        lock = f"; LOCK TABLE {one} IN SHARE ROW EXCLUSIVE MODE" if waits else ""
        try:
            database.change(
                f"SET LOCAL lock_timeout = {_LOCK_WITHIN_MS}; "
                f"ALTER PUBLICATION {sign} ADD TABLE {one}{lock}"
            )
        except DatabaseError as error:
            yield str(table), f"{table} does not join the publication: {error}"
