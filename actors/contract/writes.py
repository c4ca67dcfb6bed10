"""A write of a target, and what the target shows of itself before and after it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from changes.model.model import (
    KeyBound,
    Mode,
    SinkOptions,
    TableName,
    TableSchema,
    TableStep,
    TargetName,
)
from offsets.counts import LaneCounts, Minutes
from offsets.fence import Span, is_amid
from offsets.key_partitioning import KeyPartitioning
from offsets.position import EntryStep, TopicPartition

if TYPE_CHECKING:
    from changes.routes.shaping.partial import RowFilter


@dataclass(frozen=True, slots=True)
class Doubt:
    """Why a target's stored rows may differ from the source's from a write on, in one line.

    ``if_null``: only if a stored row has a null in this column. ``amid``: it is true of rows
    that are written with it, too, so that it counts in a table without rows.
    """

    what: str
    if_null: str | None = None
    amid: bool = False


@dataclass(frozen=True, slots=True)
class StagedBatch:
    """One write for one target: a closed batch as a staged Parquet file, a DDL, or marks alone.

    ``path`` is None when there is no row to write: then only what a DDL requires and the marks
    are published. ``schema`` is
    the required one: the sink creates the table, adds and widens columns until the target holds
    it. ``partial`` names the columns that have a presence column in the file
    (``changes.model.model.HAS_PREFIX``): where it is false the stored value stays. ``mode`` APPEND
    means
    the file carries ``CHANGELOG_NAMES`` and no row replaces another. ``changes`` counts the
    source's row changes that were folded into the ``rows``. ``positions`` names the source
    positions in the file's column ``changes.model.model.POSITION``: a target that keeps those takes
    a
    row only where it is not older than what it holds of the key, or held when that was deleted.
    """

    batch_id: str
    target: TargetName
    mode: Mode
    schema: TableSchema
    lanes: Mapping[TopicPartition, Span]
    path: str | None = None
    rows: int = 0
    changes: int = 0
    has_deletes: bool = False
    partial: tuple[str, ...] = ()
    bounds: tuple[KeyBound, ...] = ()
    positions: str | None = None
    ddl: tuple[tuple[TableStep, ...], ...] = ()
    """Statements, each with the steps that it takes at once."""
    moves_to: TargetName | None = None
    """The target has this name afterwards. Then, and with ``takes_from``, the write's lanes are
    one: the DDL's."""
    takes_from: TargetName | None = None
    """That target has this one's name afterwards. Its own write does that, and this one waits
    (WaitsForName) for it."""
    group: str = ""
    """Whose members may write these lanes: the consumer group and its cluster. The target keeps
    it beside each mark that the write moves. Empty: of no group, and different from each."""
    step: EntryStep | None = None
    """The write is part of a message of several entries, and this is what the target holds of that
    afterwards. Then the lanes are one; before the last part its mark is just below the message."""
    begun: int = 0
    """Of the step's message: how many entries the target must show before the write."""
    ends_lane: bool = False
    """It is a job's last write: the job's own lane leaves the marks, and those of its streams say
    from where they go on."""
    options: SinkOptions = ()
    """The route's options for this kind of sink, by name."""
    doubts: tuple[Doubt, ...] = ()
    """What it says of the rows that are stored already: the target's mark ``rows_may_differ`` names
    it afterwards, published in the same step."""
    table: TableName | None = None
    """Whose rows or statement it is, where the target is meant to be of one table alone: the sink
    keeps it with the target, and refuses those of another. None: of any."""
    becomes: TableName | None = None
    """What that table is named afterwards, where a statement renames it."""
    shape: str = ""
    """The fingerprint of the route's shape (``changes.routes.shaping.layout``): the sink keeps it
    with the target, and refuses rows of another shape."""
    whole: bool = False
    """Its rows may be new to the target, whatever they were at the source: they must have all
    columns that it has."""
    carried: frozenset[str] | None = None
    """The columns that each insert among its rows carries, where inserts may leave out columns
    that took their default at the source; None where none may."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Of enumerations, by column in small letters, the labels that the source has now, in MySQL's
    words: the target keeps them, and is marked where an earlier one is gone."""
    filter: RowFilter | None = None
    """The same; but of rows that lack columns the stored ones may decide whether they are there."""
    key_partitioning: KeyPartitioning | None = None
    """How the rows' keys are spread over partitions, where each key has one: the sink keeps it with
    the target, and refuses rows that are spread otherwise. None: partitions say nothing of keys."""

    counts: Mapping[TopicPartition, Minutes] | None = None
    """The source's row changes in it by minute; None: they are not counted."""
    folded: Mapping[TopicPartition, LaneCounts] = field(default_factory=dict)
    """Of the counts that the target's marks carry, those that the table of counts has."""

    @property
    def is_barrier(self) -> bool:
        """Whether it is a DDL, or the end of a message that had one."""
        bare = self.path is None and (self.step is not None or bool(self.doubts))
        return bool(self.ddl) or self.changes_name or self.becomes is not None or bare

    @property
    def amid(self) -> bool:
        """Whether it ends inside its message: the mark is below that, the step says how far."""
        return is_amid(self)

    @property
    def changes_name(self) -> bool:
        """Whether another table, or none, has the target's name afterwards."""
        return self.moves_to is not None or self.takes_from is not None


@dataclass(frozen=True, slots=True)
class TargetState:
    """What a target shows of itself. A target that does not exist yet has no schema and no mark.

    One that was dropped or renamed away by a DDL has marks, but neither schema nor version.

    ``version`` is the sink's own name of the published state (Iceberg: the snapshot id).
    ``covered``: a write found itself there already, by its own lost attempt or by another's.
    ``diverged``: its history is whole and does not hold the version that was recorded last.
    ``positions`` names the source positions that it keeps of each row, None where it keeps none.
    ``steps``: of lanes, how much it holds of the message above the mark.
    ``rows_may_differ``: what may have changed stored rows at the source alone
    (``offsets.snapshot``).
    It is the table's: one that is made or filled again has none.
    """

    schema: TableSchema | None = None
    mode: Mode | None = None
    hwms: Mapping[TopicPartition, int] = field(default_factory=dict)
    version: str | None = None
    positions: str | None = None
    steps: Mapping[TopicPartition, EntryStep] = field(default_factory=dict)
    covered: bool = field(default=False, compare=False)
    diverged: bool = field(default=False, compare=False)
    rows_may_differ: str | None = None
    key_partitioning: KeyPartitioning | None = None
    """How its rows' keys are spread over partitions, where it keeps that."""
    counts: Mapping[TopicPartition, LaneCounts] = field(default_factory=dict)
    """Of its changes, those that its marks carry until the table of counts has them."""


@dataclass(frozen=True, slots=True)
class Swap:
    """A table that was filled under the name ``new`` takes the name ``old``.

    What has that name goes ``aside`` and, unless it is to be kept, away. ``frontiers``: of each
    partition, below which offset the new table holds everything.
    """

    old: TargetName
    new: TargetName
    aside: TargetName
    frontiers: Mapping[TopicPartition, int]
    keep_old: bool = False
