"""Answers queries over the tables in a file of SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote as quote_url

from changes.model.model import TargetName
from offsets.position import TopicPartition
from sparkwriter.kit.marks_table.sqlite_ledger import quote, table_name
from sparkwriter.kit.queries import At, NoAnswer, NoTable, QueryRows, Since, only_now


class SqliteQueries:
    """See ``Queries``. The file is opened for reading alone."""

    backslashes = False

    def __init__(self, name: str, path: Path) -> None:
        self._name, self._path = name, path

    def spell(self, target: TargetName) -> str:
        """See ``Queries``."""
        return quote(table_name(target))

    def since(self, target: TargetName, source: TopicPartition, offset: int) -> Since | None:
        """See ``Queries``: it keeps the present rows alone."""
        return None

    @contextmanager
    def answer(self, sql: str, targets: Sequence[TargetName], at: At) -> Iterator[QueryRows]:
        """See ``Queries``."""
        only_now(self._name, at)
        uri = f"file:{quote_url(str(self._path))}?mode=ro"
        try:
            with closing(sqlite3.connect(uri, uri=True)) as connection:
                # Neither may a statement attach another file: that makes it, and can be written.
                connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
                cursor = connection.execute(sql)
                if cursor.description is None:
                    raise NoAnswer("the statement gives no rows: a SELECT does")
                yield QueryRows([column[0] for column in cursor.description], cursor)
        except (sqlite3.Error, sqlite3.Warning) as error:
            gone = str(error).startswith("no such table") or not self._path.exists()
            raise (NoTable if gone else NoAnswer)(f"{self._path}: {error}") from error
