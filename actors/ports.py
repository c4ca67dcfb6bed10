"""What the actors need from the world, as Protocols, with the thread that may call each.

Nothing here knows Kafka's client or Spark: the adapters live in ``daemon`` and ``sparkwriter``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from changes.model import AddColumn, KeyBound, Mode, TableSchema, TargetName
from offsets.position import TopicPartition


class Span(NamedTuple):
    """The stretch of one lane that a batch covers: above ``after``, up to ``through``.

    ``after`` is the lane's high-water mark that the target must show before the write (NO_OFFSET
    where it has none), ``through`` is the one it shows afterwards.
    """

    after: int
    through: int


@dataclass(frozen=True, slots=True)
class StagedBatch:
    """One write for one target: a closed batch as a staged Parquet file, or marks alone.

    ``path`` is None when there is no row to write: then only ``adds`` (columns that a DDL adds,
    with their defaults for the rows already stored) and the marks are published. ``schema`` is
    the wanted one: the sink creates the table, adds and widens columns until the target holds
    it. ``partial`` names the columns that have a presence column in the file
    (``changes.model.HAS_PREFIX``): where it is false the stored value stays. ``mode`` APPEND means
    the file carries ``CHANGELOG_COLUMNS`` and no row replaces another.
    """

    batch_id: str
    target: TargetName
    mode: Mode
    schema: TableSchema
    lanes: Mapping[TopicPartition, Span]
    path: str | None = None
    rows: int = 0
    has_deletes: bool = False
    partial: tuple[str, ...] = ()
    bounds: tuple[KeyBound, ...] = ()
    adds: tuple[AddColumn, ...] = ()


@dataclass(frozen=True, slots=True)
class TargetState:
    """What a target shows of itself. A target that does not exist yet has no schema and no mark.

    ``version`` is the sink's own name of the published state (Iceberg: the snapshot id).
    """

    schema: TableSchema | None = None
    mode: Mode | None = None
    hwms: Mapping[TopicPartition, int] = field(default_factory=dict)
    version: str | None = None


class BatchWriter(Protocol):
    """A sink as a writer actor sees it: Iceberg, Delta, JDBC and others fit behind it unchanged.

    One instance serves one writer actor and is called on that actor's thread only; several
    instances of one sink work side by side on different targets.
    """

    def open(self, target: TargetName) -> TargetState:
        """Read the target's schema and marks, from the sink itself, never from a cache.

        Raises SinkUnavailable (try again) or TargetRefused (it can't be had as it is).
        """
        ...

    def write(self, batch: StagedBatch) -> TargetState:
        """Publish the batch in one atomic step together with its lanes' new marks.

        Marks of lanes that are not in ``batch.lanes`` are carried over. Where the target shows
        every ``through`` already, nothing is written and its state is returned: a retry after a
        lost reply is harmless. Raises Fenced when a lane's mark is neither ``after`` nor covered,
        or when another writer published meanwhile; SinkUnavailable when trying again may help;
        TargetRefused when the schema can't fit. Whatever it raises, readers saw nothing.
        """
        ...


class SinkUnavailable(Exception):
    """The sink can't take the write now; the same batch may be offered again later."""


class TargetRefused(Exception):
    """The target can't hold what the source has (a type that can't widen, another key)."""


class Fenced(Exception):
    """Another writer moved the target: what this one knows of its marks is out of date."""
