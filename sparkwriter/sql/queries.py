"""Answers queries over the tables of a database server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain

from changes.model.model import TargetName
from databases.base.database import Database
from offsets.position import TopicPartition
from sparkwriter.kit.queries import At, QueryRows, Since, only_now

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
        finally:
            self._database.close()
