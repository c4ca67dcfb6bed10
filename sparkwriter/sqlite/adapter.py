"""A file of SQLite as a configured sink. It needs neither Java nor Spark."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from actors.contract.ports import ResettableSink
from changes.model.model import TargetName
from settings.rotation import SecretSettings
from sparkwriter.kit.marks_table.writer import LedgeredWriter
from sparkwriter.kit.port import Sessions, Sink
from sparkwriter.kit.readers import HowToRead, by_query
from sparkwriter.kit.sqlite_file import try_file
from sparkwriter.sqlite.queries import SqliteQueries
from sparkwriter.sqlite.section import SqliteSection
from sparkwriter.sqlite.store import SqliteStore


class SqliteSink(Sink):
    """SQLite's own locks keep writers apart. It has no text that is exact for each value, so its
    tables are read by themselves."""

    def __init__(self, name: str, section: SqliteSection) -> None:
        self._name = name
        self._section = section

    def probe(self) -> bool:
        """The file can be opened and written, or made."""
        try_file(f"sink {self._name}", self._section.path)
        return True

    def exchanges(self) -> SqliteStore | None:
        """A file that is not there has no table that could be in the way."""
        return SqliteStore(self._section.path) if self._section.path.exists() else None

    def queries(self) -> SqliteQueries:
        """A connection of their own."""
        return SqliteQueries(self._name, self._section.path)

    def readers(self, target: TargetName) -> Iterator[HowToRead]:
        """By SQLite's own shell."""
        yield by_query(target)
        select = f"SELECT * FROM {SqliteQueries(self._name, self._section.path).spell(target)}"
        words = ["sqlite3", "-readonly", str(self._section.path), select]
        yield HowToRead("SQLite", shlex.join(words))

    def open(self, owner: str, sessions: Sessions | None) -> None:
        """Make the file and its ledger."""
        self.writer()

    def writer(self) -> ResettableSink:
        """One connection."""
        return LedgeredWriter(SqliteStore(self._section.path, self._section.write_timeout_s))


def make_sink(name: str, section: SqliteSection, config: SecretSettings) -> Sink:
    """See ``sparkwriter.sections``."""
    return SqliteSink(name, section)
