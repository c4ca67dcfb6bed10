"""A file of SQLite as a sink."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

from tests.live.schema import Name
from tests.live.sinks import Difference, Stored


class SqliteSink:
    """A ``Sink``: a file for each round."""

    name = "file"

    def __init__(self) -> None:
        self._path = Path()

    def start(self) -> None:
        """No server."""

    def kill(self) -> None:
        """No server."""

    def sections(self, folder: Path) -> Sequence[str]:
        return [f"[sink.{self.name}]", 'kind = "sqlite"', f'path = "{folder}/copy.db"']

    def begin(self, folder: Path) -> None:
        self._path = folder / "copy.db"

    def end(self) -> None:
        """The file goes with the round's folder."""

    def read(self, databases: Sequence[str]) -> Mapping[Name, Stored]:
        found = {}
        with closing(sqlite3.connect(f"file:{self._path}?mode=ro", uri=True)) as file:
            listed = file.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
            for (whole,) in listed:
                database, _, table = whole.partition(".")
                if database in databases:
                    found[database, table] = _stored(file, whole)
        return found

    def plant(self, difference: Difference) -> str:
        database, table = difference.table
        text = difference.sql('"' + f"{database}.{table}".replace('"', '""') + '"', '"')
        try:
            with closing(sqlite3.connect(self._path, timeout=20)) as file, file:
                file.execute(text)
        except sqlite3.Error as error:
            return str(error)
        return ""


def _stored(file: sqlite3.Connection, table: str) -> Stored:
    quoted = '"' + table.replace('"', '""') + '"'
    asked = file.execute(f"SELECT * FROM {quoted}")
    names = tuple(column[0] for column in asked.description)
    return Stored(names, [dict(zip(names, row, strict=True)) for row in asked])
