"""The databases that are read, behind one face: statements in, rows out, a reader's settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from tests.live.comparison import Found
from tests.live.program import Program
from tests.live.schema import Maker, Name, Schema

MARKER = "live_marker"
"""A table of each seed, into which a row goes at a checkpoint."""
FIRST_NUMBER = 2_000_000
"""From here on ids of the marker's table are those of a writer: each transaction the next few."""
MOST_PARTITIONS = 8


def markers(partitions: int) -> list[str]:
    """Tables of which each partition has one: hashes of names that differ in the last digit follow
    each other."""
    return [MARKER, *(f"{MARKER}_{place}" for place in range(1, partitions + (partitions > 1)))]


def numbered(table: str, numbers: Sequence[range]) -> list[str]:
    """The statements of a writer's transaction."""
    rows = (", ".join(f"({number})" for number in each) for each in numbers)
    return ["BEGIN", *(f"INSERT INTO {table} VALUES {each}" for each in rows), "COMMIT"]


class Source(Protocol):
    """One database server. One thread's."""

    prefix: str
    """Of the names of a seed's databases, which differ from all others' by it and the seed."""
    port: int
    tells_statements: bool
    """Whether its log has them."""
    publication: str
    """What publishes a seed's tables; empty where a log needs none."""
    program: Program
    kinds: Mapping[Maker, float]
    hostile: Mapping[Maker, float]
    """Kinds that seeds from ``hostile.FIRST`` on have in addition."""

    def start(self) -> None:
        """Start it, with the data there are."""

    def prepare(self, seed: int, images: Sequence[str]) -> Schema:
        """Make a seed's databases. ``images``: the row images that its reader takes."""

    def connector(self, seed: int, folder: Path) -> Mapping[str, str]:
        """What a connector of Debezium needs to read a seed's databases."""

    def readers(self) -> frozenset[str]:
        """Who follows its log now; one that comes again has another name, or its own."""

    def run(self, schema: Schema, statements: Sequence[str]) -> str:
        """Run statements of one session; gives the error that ended it, or nothing."""

    def mark(self, schema: Schema, number: int) -> None:
        """Write a row into the marker table, and whatever else a checkpoint needs."""

    def beat(self, schema: Schema, number: int, partitions: int = 1) -> None:
        """Write a row into the marker table, and into those of further partitions."""

    def write(self, schema: Schema, numbers: Sequence[range]) -> str:
        """One transaction of rows of the marker table, a statement for each range; gives the
        error that took it back, or nothing. Any thread."""

    def address(self, seed: int) -> tuple[str, str, str]:
        """The URL, user and password by which binlogd reads a seed's tables."""

    def log_address(self, seed: int) -> tuple[str, str, str]:
        """The same of a user who may read the log, too."""

    def read(self, schema: Schema) -> Mapping[Name, Found]:
        """Every table of a seed."""
