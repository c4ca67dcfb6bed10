"""What a sink of tables has to do itself; the rest is the kit's (``sparkwriter.kit.writer``).

A sink is a ``TableStore``. It knows its own tables and how it changes one in a single step that
readers see whole or not at all, and that fails where the table has moved since it was looked at.
Which write may land, what is covered, refused, or waited for, is decided once, above it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Generic, Protocol, TypeVar

import pyarrow as pa

from actors.contract.writes import StagedBatch, Swap, TargetState
from changes.model.model import TableName, TargetName
from changes.sql.spark.ddl_plan import DdlTable
from changes.sql.spark.schema import LakeColumn, SchemaStep, StoredTable
from offsets.fence import Marks, of_streams
from offsets.key_partitioning import KeyPartitioning
from offsets.snapshot import TargetMark
from settings.shell import quoted

T = TypeVar("T")

FOUND = "__binlogd_found"
"""Column of ``TableStore.read_rows``."""


class Delivery(Enum):
    """How rows and marks get into a target."""

    ATOMIC = "atomic"
    """Together, in one step."""
    IDEMPOTENT = "idempotent"
    """Rows first, marks after: what is written again says the same. Only with one lane a target."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a sink can. What it can't is refused by name before anything is written."""

    delivery: Delivery = Delivery.ATOMIC
    partial_rows: bool = True
    """Rows that lack columns keep what is stored in them."""
    positions: bool = True
    """A row is taken only where it is not older than the stored one, by source positions."""
    rename: bool = True
    """A table takes another name."""
    drop: bool = True
    """A table goes away."""
    read_rows: bool = True
    """It tells what it stores of some keys: then a filter can decide rows that lack columns. Only
    with ATOMIC delivery: a write that is repeated would else ask for what it wrote itself."""
    history: bool = True
    """It can tell whether a version that it showed once is among those that led to the present."""


@dataclass(frozen=True, slots=True)
class Absent:
    """There is no such table. It has marks where a DDL took it away."""

    marks: Marks = field(default_factory=Marks)

    @property
    def state(self) -> TargetState:
        """What the processor hears."""
        marks = self.marks
        hwms = of_streams(marks.offsets)
        return TargetState(hwms=hwms, steps=marks.steps, counts=marks.counts)


@dataclass(frozen=True, slots=True)
class Existing(Generic[T]):
    """One look at a table of ours. ``table`` is the store's own handle on it.

    ``version``: the sink's name of what was seen. ``renamed``: its marks came with the name that it
    got, and are in no step of its own yet. ``dropped``: where the source dropped its table.
    ``positions`` as of ``TargetState``. ``diverged``: its history is whole and does not hold the
    version that was requested. ``differs``: what may have changed its rows at the source alone.
    ``source``: the source's table, None where that is not known or several. ``shape``: the
    fingerprint of the shape that its rows have. ``labels``: those of its enumerations, as JSON.
    ``key_partitioning``: how its keys are spread (``offsets.key_partitioning``), as JSON.
    """

    target: TargetName
    table: T
    stored: StoredTable
    marks: Marks
    version: str
    renamed: bool = False
    dropped: str | None = None
    positions: str | None = None
    diverged: bool = False
    differs: str | None = None
    source: TableName | None = None
    shape: str = ""
    labels: str = ""
    key_partitioning: str = ""

    @property
    def state(self) -> TargetState:
        """What the processor hears."""
        marks = self.marks
        hwms = of_streams(marks.offsets)
        state = TargetState(self.stored.schema, self.stored.mode, hwms, self.version)
        return replace(
            state,
            positions=self.positions,
            steps=marks.steps,
            diverged=self.diverged,
            rows_may_differ=self.differs,
            key_partitioning=self.spread,
            counts=marks.counts,
        )

    @property
    def spread(self) -> KeyPartitioning | None:
        """How its keys are spread over partitions, where it keeps that."""
        return KeyPartitioning.parse(self.key_partitioning) if self.key_partitioning else None


E = TypeVar("E", bound=Existing)  # type: ignore[type-arg]


@dataclass(frozen=True, slots=True)
class Facts:
    """What a table says of itself once a step is published."""

    marks: Marks
    differs: str | None = None
    source: TableName | None = None
    shape: str = ""
    labels: str = ""
    """Empty: as they were."""
    key_partitioning: str = ""
    """Likewise."""


@dataclass(frozen=True, slots=True)
class TableChange:
    """What statements make of a table. ``dropped``: where the source dropped its own, for good."""

    before: DdlTable
    after: DdlTable
    facts: Facts
    dropped: str | None = None


class TableStore(Protocol[E]):
    """A sink's tables. One writer's, called on its thread.

    Each method raises SinkUnavailable where trying again may help, LostRace where the table is not
    as it was seen, TargetRefused where the target can't be as it has to be; or what ``call`` turns
    into these.
    """

    @property
    def capabilities(self) -> Capabilities:
        """What it can."""
        ...

    def call(self, target: TargetName) -> AbstractContextManager[None]:
        """Around each call for a target: the sink's own errors become the port's."""
        ...

    def look(self, target: TargetName) -> E | Absent:
        """Read the table from the sink itself, never from a cache."""
        ...

    def open(self, target: TargetName, recorded: TargetMark | None) -> E | Absent:
        """The first look at a target. ``recorded`` as of ``BatchWriter.open``."""
        ...

    def create(self, batch: StagedBatch, columns: Sequence[LakeColumn], facts: Facts) -> None:
        """Make the batch's table, empty, in one step. Where another did meanwhile, that stays."""
        ...

    def change_schema(self, seen: E, steps: Sequence[SchemaStep], differs: str | None) -> None:
        """Add and widen columns and set ``differs``, in one step. Nothing where it came too late:
        the next look tells."""
        ...

    def publish(self, seen: E, batch: StagedBatch, facts: Facts) -> str:
        """The batch's rows, if any, and the facts, in one step. Gives the version that it made."""
        ...

    def read_rows(self, seen: E, keys: pa.Table, columns: Sequence[str]) -> pa.Table:
        """What is stored of each row of ``keys``, in their order: ``FOUND``, whether there is one,
        and the columns, NULL where there is none. Where the table is no longer as it was seen,
        ``publish`` fails."""
        ...

    def reset(self, seen: E, marks: Marks) -> str:
        """Publish marks that an operator moved. Of a changelog the rows above a lowered mark go in
        the same step. Gives the version."""
        ...

    def columns(self, seen: E) -> DdlTable:
        """The table as statements find it."""
        ...

    def change(self, seen: E, change: TableChange) -> None:
        """What statements make of the table, with their marks, in one step."""
        ...

    def move(self, seen: E, to: TargetName, change: TableChange, left: Marks) -> None:
        """The same, and the name ``to``: there the change's marks are lifted to, the old name shows
        ``left``. Readers of the marks see it done or not done; repeating it does what is left."""
        ...

    def set_aside(self, seen: E, aside: TargetName) -> None:
        """Give the table another name; its own keeps the marks."""
        ...

    def drop(self, seen: E, marks: Marks) -> None:
        """Take the table away; its name shows the marks."""
        ...

    def bury(self, target: TargetName, marks: Marks) -> None:
        """Have a name that no table has show the marks."""
        ...

    def free(self, target: TargetName, renaming: str) -> None:
        """Note that all that the name was before a renaming is written."""
        ...

    def freed(self, target: TargetName) -> str | None:
        """The renaming that may take the name."""
        ...

    def is_empty(self, seen: E) -> bool:
        """Whether the table holds no row, for sure."""
        ...

    def may_hold_null(self, seen: E, column: str) -> bool:
        """Whether a stored row may have a null in the column."""
        ...

    def filled(self, seen: E) -> frozenset[str]:
        """The columns, in small letters, that the table fills by itself in rows without them."""
        ...

    def added_otherwise(self, seen: E, batch: StagedBatch) -> list[str]:
        """What the batch's statements add with another default than the table shows it with."""
        ...


# What the exchange of a rebuilt table has in common, whatever the sink.

DROP_BY_HAND = "drop it by hand: nothing needs it"
"""What is to be done with a table that was replaced, and could not be removed."""


def hangs_on_it(hanging: Sequence[str]) -> str:
    """Why a table with these can't be replaced by another one, and what to do."""
    return (
        f"{', '.join(hanging)}: would go with the old table, or stay with it: remove it for the "
        "load or rebuild, and make it again afterwards"
    )


def nothing_rebuilt(swap: Swap) -> str:
    """Why there is nothing to exchange, and what leaves the old table as it is."""
    return (
        "nothing was written to its new table: the log holds no row of it. `binlogd tables "
        f"rebuild {quoted(swap.old)} --cancel` leaves it as it is"
    )
