"""What a load asks of the database, the log and the lake, beside what every job may ask."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from changes.model.model import KeyBound, SinkOptions, TableName, TableSchema
from changes.model.places import Place
from databases.base.log_end import LogEnd, ReaderPosition
from databases.base.port import KeyRange, Moment
from offsets.position import TopicPartition


@dataclass(frozen=True, slots=True)
class LoadSettings:
    """``[load]`` with the bounds of the databases. Times are seconds; ``None`` is no bound."""

    margin_s: float
    settle_s: float
    idle_s: float | None
    chunk_rows: int
    parallel: int
    rows_per_s: int | None
    attempts_per_hour: int
    by_positions: bool = True
    skew_s: float = 5.0
    """How far the source's clock and the one of who stamps messages may be apart."""


@dataclass(frozen=True, slots=True)
class Described:
    """A source table as it is to be loaded now: what is read, and what it becomes.

    ``definition`` changes with whatever makes chunks read before and after differ. ``owner``: the
    table, where the target is of it alone. ``shape``: the fingerprint of what its route shows.
    """

    schema: TableSchema
    definition: str
    rows: int
    owner: TableName | None
    options: SinkOptions = ()
    shape: str = ""


@dataclass(frozen=True, slots=True)
class Chunk:
    """The rows of one range in a staged file, ready to be written."""

    path: str
    rows: int
    bounds: tuple[KeyBound, ...] = ()


class Tables(Protocol):
    """The database, read for one pipeline. One job's. Raises DatabaseAway, DatabaseRefused."""

    def describe(self, table: TableName, target: str) -> Described:
        """The table as it is now, for that target."""
        ...

    def unlike(self, tables: Mapping[str, TableName]) -> Mapping[str, str]:
        """Of the tables, by target, those whose columns can't be their target's, each with why."""
        ...

    def ranges(self, table: TableName, rows: int) -> Sequence[KeyRange]:
        """It in ranges of about so many rows. An empty table is one range."""
        ...

    def read(
        self,
        table: TableName,
        target: str,
        parts: Sequence[KeyRange],
        attempt: str,
        then: Sequence[KeyRange] = (),
    ) -> Sequence[Chunk]:
        """Read ranges side by side, each as one statement sees it. Raises JobAway, too.

        ``then`` may be read from now on: by the next call, if it is for them and of the same
        ``attempt``. No statement of an attempt begins before the attempt's first call.
        """
        ...

    def remove(self, chunks: Sequence[Chunk]) -> None:
        """Their files are not needed any more."""
        ...

    def moment(self, tables: Sequence[TableName]) -> Moment:
        """The now of the tables' database: every read of them before it saw only what is at or
        below it. Of several databases the latest."""
        ...

    def log_end(self, tables: Sequence[TableName]) -> LogEnd:
        """Where the log of the tables' database is now: what reads of them before it saw is in it.
        Of several databases none."""
        ...

    def visible(self, table: TableName, end: LogEnd) -> bool:
        """Whether a read of the table sees all that was in its database's log at that end. Of a
        replica: whether it does once it has applied the present position."""
        ...

    def position(self, table: TableName) -> str:
        """Where the log of the table's database is now, if it is read from a replica; else
        empty."""
        ...

    def shown(self, table: TableName, position: str) -> bool:
        """Whether a read of the table has all up to that position."""
        ...


class LoadLog(Protocol):
    """The pipeline's log, read beside the group. Raises NotAnswered, LogUnreadable."""

    def partitions(self) -> Sequence[TopicPartition]:
        """All of the pipeline's topics."""
        ...

    def ends(self, sources: Sequence[TopicPartition]) -> Mapping[TopicPartition, int]:
        """Where they end now."""
        ...

    def begins(self, sources: Sequence[TopicPartition]) -> Mapping[TopicPartition, int]:
        """Where they begin now."""
        ...

    def places(self, sources: Sequence[TopicPartition]) -> Sequence[Place]:
        """Where the last messages of each say that they are in the source's log."""
        ...

    def position(self) -> ReaderPosition:
        """Where the reader of the source's log has its position now."""
        ...

    def passed(
        self, scanned: Mapping[TopicPartition, int], after_ms: int, log: LogEnd
    ) -> tuple[Mapping[TopicPartition, int], Mapping[TopicPartition, int]]:
        """Look on from ``scanned``: of each partition the first message whose change happened after
        that end of the source's log, or after that Unix millisecond by the source's clock, where
        there is one, or its end, where the reader's position is behind that of the source's log;
        and up to where it was looked."""
        ...
