"""Answers queries over the tables of a database server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain

from changes.model.model import TargetName
from databases.base.database import Database
from databases.base.errors import DatabaseRefused
from offsets.position import TopicPartition
from sparkwriter.kit.queries import At, NoTable, QueryRows, Since, only_now

_IS_THERE = "SELECT 1 FROM information_schema.tables WHERE table_schema = %s AND table_name = %s"
_AT_ONCE = 1000
"""Rows that the server sends together."""


class DatabaseQueries:
    """See ``Queries``. The session may only read, and takes one statement: the server sees to
    both."""

    def __init__(self, name: str, database: Database) -> None:
        self._name, self._database = name, database
        self.backslashes = database.kind == "mysql"

    def spell(self, target: TargetName) -> str:
        """See ``Queries``."""
        quote = self._database.quote
        return f"{quote(target.namespace)}.{quote(target.table)}"

    def since(self, target: TargetName, source: TopicPartition, offset: int) -> Since | None:
        """See ``Queries``: it keeps the present rows alone."""
        return None

    @contextmanager
    def answer(self, sql: str, targets: Sequence[TargetName], at: At) -> Iterator[QueryRows]:
        """See ``Queries``."""
        only_now(self._name, at)
        try:
            some = self._database.answer(sql, _AT_ONCE)
            ((*columns,),) = next(some)
            yield QueryRows([str(column) for column in columns], chain.from_iterable(some))
        except DatabaseRefused as error:
            for target in targets:
                if not self._database.ask(_IS_THERE, (target.namespace, target.table)):
                    raise NoTable(f"{target} is not there: {error}") from error
            raise
        finally:
            self._database.close()
