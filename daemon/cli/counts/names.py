"""Finds the tables that an END of a transaction names, in the source's words. Pure.

Most sources name ``database.table`` or ``schema.table``, as routes do. Some put the catalog before
it, and a name may hold dots.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from changes.model.model import TableName


class TableNames:
    """One thread's."""

    def __init__(self, targets: Callable[[TableName], tuple[str, ...]]) -> None:
        """``targets``: of a table, those that are asked."""
        self._targets = targets
        self._seen: dict[str, TableName] = {}
        self._known: dict[str, TableName | None] = {}

    def seen(self, table: TableName) -> None:
        """Note a table of which rows came."""
        if str(table) not in self._seen:
            self._seen[str(table)] = table
            self._known.clear()

    def expected(self, told: Mapping[str, int]) -> dict[TableName, int] | None:
        """What an END says, by asked table; None where a name may be of several."""
        found: dict[TableName, int] = {}
        for name, number in told.items():
            try:
                table = self._table(name)
            except LookupError:
                return None
            if table is not None and number:
                found[table] = found.get(table, 0) + number
        return found

    def _table(self, name: str) -> TableName | None:
        """Raises LookupError where it may be of several."""
        if name not in self._known:
            if len(self._known) >= _MOST:
                self._known.clear()
            self._known[name] = self._find(name)
        return self._known[name]

    def _find(self, name: str) -> TableName | None:
        behind_catalog = name.partition(".")[2]
        for spelled in (name, behind_catalog):
            if spelled in self._seen:
                return self._seen[spelled]
        asked = self.possible(name)
        if len(asked) > 1:
            raise LookupError(name)
        return next(iter(asked), None)

    def possible(self, name: str) -> set[TableName]:
        """The asked tables that a name may be of, as long as no rows of them came."""
        behind_catalog = name.partition(".")[2]
        spellings = (name, behind_catalog) if "." in behind_catalog else (name,)
        return {table for each in spellings for table in _split(each) if self._targets(table)}


_MOST = 100_000


def _split(name: str) -> Iterator[TableName]:
    """Each way to read a name as a database and a table."""
    for at, sign in enumerate(name):
        if sign == "." and 0 < at < len(name) - 1:
            yield TableName(name[:at], name[at + 1 :])
