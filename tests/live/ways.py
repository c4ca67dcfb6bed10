"""Which databases are read by what, and which sinks are written: by a run's options."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.live.canal import Canal
from tests.live.cluster import Cluster
from tests.live.collector import Collector
from tests.live.connect import Connect
from tests.live.maxwell import Maxwell
from tests.live.readers import Reader
from tests.live.sink_databases import MariaDbSink, PostgresSink
from tests.live.sink_iceberg import IcebergSink
from tests.live.sink_sqlite import SqliteSink
from tests.live.sinks import Sink
from tests.live.source_mariadb import MariaDbSource
from tests.live.source_postgres import PostgresSource
from tests.live.sources import Source

SOURCES: Mapping[str, Callable[[Path], Source]] = {
    "mariadb": MariaDbSource, "postgres": PostgresSource,
}  # fmt: skip
READERS: Mapping[str, Callable[[Path, str], Reader]] = {
    "debezium": Connect, "maxwell": Maxwell, "canal": Canal, "collector": Collector,
    "adopted": Cluster,
}  # fmt: skip
SINKS: Mapping[str, Callable[[Path], Sink]] = {
    "iceberg": lambda folder: IcebergSink(), "postgres": PostgresSink, "mariadb": MariaDbSink,
    "sqlite": lambda folder: SqliteSink(),
}  # fmt: skip
_READS: Mapping[str, Sequence[str]] = {
    "debezium": ("mariadb", "postgres"), "maxwell": ("mariadb",), "canal": ("mariadb",),
    "collector": ("mariadb", "postgres"), "adopted": ("mariadb", "postgres"),
}  # fmt: skip


class NoSuchWay(ValueError):
    """An option names what there is not, or what does not go together."""


@dataclass(frozen=True, slots=True)
class Way:
    """A database and what reads its log, by their names."""

    source: str
    reader: str

    def __str__(self) -> str:
        return f"{self.source}, {self.reader}"


def ways(sources: Sequence[str], readers: Sequence[str]) -> Sequence[Way]:
    """Every database with every reader of it. Raises NoSuchWay where one of them is in none."""
    found = [Way(s, r) for r in readers for s in sources if s in _READS[r]]
    for reader in readers:
        if all(way.reader != reader for way in found):
            raise NoSuchWay(f"{reader} reads {' and '.join(_READS[reader])} alone")
    for source in sources:
        if all(way.source != source for way in found):
            raise NoSuchWay(f"{source}: none of {', '.join(readers)} reads it")
    return found


def named(option: str, text: str, known: Sequence[str] | Mapping[str, object]) -> tuple[str, ...]:
    """The words of an option, by commas or blanks. Raises NoSuchWay."""
    words = tuple(dict.fromkeys(text.replace(",", " ").split()))
    if unknown := [word for word in words if word not in known]:
        raise NoSuchWay(f"--{option}: {unknown[0]!r} is none of {', '.join(known)}")
    if not words:
        raise NoSuchWay(f"--{option}: one of {', '.join(known)}")
    return words
