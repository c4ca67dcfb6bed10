"""A file of SQLite as a configured sink. It needs neither Java nor Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from actors.contract.ports import ResettableSink
from changes.routes.routing import Route
from sparkwriter.kit.marks_table.store import LedgeredWriter
from sparkwriter.kit.port import Sessions
from sparkwriter.kit.sqlite_file import try_file
from sparkwriter.session.section import SparkSection
from sparkwriter.sqlite.section import SqliteSection
from sparkwriter.sqlite.store import SqliteStore


class SqliteSink:
    """``sparkwriter.kit.port.Sink``."""

    def __init__(self, name: str, section: SqliteSection) -> None:
        self._name = name
        self._section = section

    def problems(self) -> Iterator[str]:
        """A path is a path."""
        return iter(())

    def warnings(self, spark: SparkSection) -> Iterator[str]:
        """Nothing is unwise."""
        return iter(())

    @property
    def single_writer(self) -> str | None:
        """SQLite's own locks keep writers apart."""
        return None

    def probe(self) -> bool:
        """The file can be opened and written, or made."""
        try_file(f"sink {self._name}", self._section.path)
        return True

    def catalog(self) -> Mapping[str, str] | None:
        """It is written without Spark."""
        return None

    def keeps_names(self) -> str | None:
        """Its tables can be renamed."""
        return None

    def exchanges(self) -> SqliteStore | None:
        """A file that is not there has no table that could be in the way."""
        return SqliteStore(self._section.path) if self._section.path.exists() else None

    def database(self) -> None:
        """SQLite has no text that is exact for each value."""

    def open(self, owner: str, sessions: Sessions | None) -> None:
        """Make the file and its ledger."""
        self.writer()

    def try_out(self, sessions: Sessions | None, routes: Iterable[Route]) -> Iterator[str]:
        """All was tried by ``probe``."""
        return iter(())

    def writer(self) -> ResettableSink:
        """One connection."""
        return LedgeredWriter(SqliteStore(self._section.path, self._section.write_timeout_s))

    def prepare_stop(self) -> None:
        """It does nothing but write."""
