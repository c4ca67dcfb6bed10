"""Finds statements that spell a table's name in another case than its rows do.

A server with ``lower_case_table_names`` keeps names in small letters and logs statements as they
were typed: ``TRUNCATE TABLE Orders`` is of ``orders`` there, and of another table on a server with
case-sensitive names. Nothing in the log says which kind of server it is.
"""

from __future__ import annotations

from changes.model.model import Ddl, TableName


class Spellings:
    """The routed tables that had rows, by their names without case."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str], set[TableName]] = {}

    def rows_of(self, table: TableName) -> None:
        """Note that the table has rows."""
        self._seen.setdefault(_folded(table), set()).add(table)

    def otherwise(self, statement: Ddl) -> str | None:
        """Why a statement that does something may be of another table than it names, if it may."""
        table = statement.table
        seen = self._seen.get(_folded(table), set())
        if not seen or table in seen or not (statement.steps or statement.refused):
            return None
        return (
            f"{table}: a statement in another case than the rows, which come of "
            f"{' and '.join(sorted(map(str, seen)))}: where the server does not tell case "
            "(lower_case_table_names) it was of that table, and is not done there"
        )


def _folded(table: TableName) -> tuple[str, str]:
    return table.database.casefold(), table.table.casefold()
