"""A file of SQLite as a configured sink. It needs neither Java nor Spark."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import quote

from actors.contract.ports import ResettableSink, SinkUnavailable
from daemon.config.sections import SparkSection
from daemon.sinks.port import Sessions
from daemon.sinks.sections import SqliteSection
from sparkwriter.sqlite.store import SqliteStore, SqliteWriter

TRIED_FOR_S = 5.0
"""How long a look at a file waits for who writes it."""


class SqliteSink:
    """``daemon.sinks.port.Sink``."""

    def __init__(self, name: str, section: SqliteSection) -> None:
        self._name = name
        self._section = section

    def problems(self) -> Iterator[str]:
        """A path is a path."""
        return iter(())

    def warnings(self, spark: SparkSection) -> Iterator[str]:
        """Nothing is unwise."""
        return iter(())

    def probe(self) -> bool:
        """The file can be opened and written, or made."""
        try_file(f"sink {self._name}", self._section.path)
        return True

    def catalog(self) -> Mapping[str, str] | None:
        """It is written without Spark."""
        return None

    def open(self, owner: str, sessions: Sessions | None) -> None:
        """Make the file and its ledger."""
        self.writer()

    def writer(self) -> ResettableSink:
        """One connection."""
        return SqliteWriter(SqliteStore(self._section.path, self._section.write_timeout_s))

    def hurry(self) -> None:
        """It does nothing but write."""


def try_file(what: str, path: Path) -> None:
    """Raise SinkUnavailable, beginning with ``what``, where the file can't be opened and written.

    One that is not there yet is made by the first start: its folder must take one.
    """
    if not path.exists():
        if not os.access(path.parent, os.W_OK | os.X_OK):
            raise SinkUnavailable(f"{what}: can't make {path}")
        return
    try:
        uri = f"file:{quote(str(path))}?mode=rw"
        connection = sqlite3.connect(uri, uri=True, timeout=TRIED_FOR_S)
        try:
            connection.execute("SELECT name FROM sqlite_master LIMIT 1").fetchall()
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise SinkUnavailable(f"{what}: can't open {path}: {error}") from error
    if not os.access(path, os.W_OK):
        raise SinkUnavailable(f"{what}: can't write {path}")
