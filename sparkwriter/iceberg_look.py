"""What the sink sees when it looks at a target: a table of ours with its marks, or none."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace

from actors.ports import Fenced, StagedBatch, TargetRefused, TargetState
from changes.model import Mode, TargetName
from offsets.position import NO_OFFSET, TopicPartition
from offsets.rollback import ways_out
from sparkwriter.iceberg_catalog import LakeCatalog
from sparkwriter.iceberg_java import LakeTable
from sparkwriter.iceberg_marks import HWM, marks_of, nearest_mark
from sparkwriter.iceberg_publish import MAIN
from sparkwriter.schema import StoredTable

MODE = "binlogd.mode"
KEYS = "binlogd.keys"
POSITIONS = "binlogd.positions"
"""Table property: the source positions that the table keeps of each row."""
KEPT = "binlogd.kept-columns"
"""Table property: the columns that the source has dropped and the table keeps, a JSON list."""
DROPPED = "binlogd.dropped"
"""Table property: the offset of the DROP of the source's table, as ``topic:partition:offset``."""
RENAMING = "binlogd.renaming"
"""Table property: ``{"to": name, "marks": …}``. Once the table has that name it contains these
marks too: so the renaming itself, one step of the catalog, publishes them."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One look at a table of ours: what it holds and what main showed.

    ``renamed``: marks come from the name it got. ``dropped``: the source has dropped its own.
    ``parted``: main's history is whole and does not hold the snapshot that was asked for.
    """

    table: LakeTable
    stored: StoredTable
    main: int
    marks: Mapping[TopicPartition, int]
    renamed: bool = False
    dropped: str | None = None
    positions: str | None = None

    parted: bool = False

    @property
    def state(self) -> TargetState:
        """What the processor hears."""
        return replace(self.state_at(self.marks, self.main), parted=self.parted)

    def state_at(self, marks: Mapping[TopicPartition, int], main: int) -> TargetState:
        """What it hears once main shows another snapshot with these marks."""
        schema, mode = self.stored.schema, self.stored.mode
        return TargetState(schema, mode, marks, str(main), self.positions)


@dataclass(frozen=True, slots=True)
class Absent:
    """There is no such table. It has marks where a DDL took it away."""

    marks: Mapping[TopicPartition, int]

    @property
    def state(self) -> TargetState:
        """What the processor hears."""
        return TargetState(hwms=self.marks)


def look(
    catalog: LakeCatalog, target: TargetName, loaded: LakeTable | None = None
) -> Seen | Absent:
    """Read a target from the catalog. Raises TargetRefused, and JavaFailure.

    ``loaded``: its table, where it has just been loaded.
    """
    table = loaded or catalog.load(target)
    if table is None:
        gone = catalog.gone(target)
        return Absent({} if gone is None else marks_of(gone))
    mode = table.property(MODE)
    if mode is None:
        raise TargetRefused("the table exists and was not made by binlogd")
    keys = tuple(json.loads(table.property(KEYS) or "[]"))
    main = table.head(MAIN)
    mark = None if main is None else nearest_mark(table, main)
    if main is None or mark is None:
        raise TargetRefused(
            f"no snapshot in main's history carries {HWM}: the mark is gone (expired, or"
            " rolled back beyond the first), so nobody can tell what the table contains."
            f" {ways_out('', str(target))}"
        )
    marks = marks_of(mark.text)
    text = table.property(RENAMING)
    renaming = {} if text is None else json.loads(text)
    renamed = renaming.get("to") == str(target)
    if renamed:
        for lane, offset in marks_of(json.dumps(renaming["marks"])).items():
            marks[lane] = max(offset, marks.get(lane, NO_OFFSET))
    stored = StoredTable(table.columns(), Mode(mode), keys)
    dropped, positions = table.property(DROPPED), table.property(POSITIONS)
    return Seen(table, stored, main, marks, renamed, dropped, positions)


def covered(batch: StagedBatch, marks: Mapping[TopicPartition, int]) -> bool:
    """Whether the target holds just this batch already: its reply was lost.

    Above that, somebody else has gone on: what waits behind this batch would be written again.
    """
    return all(marks.get(lane, NO_OFFSET) == span.through for lane, span in batch.lanes.items())


def check_expected(batch: StagedBatch, marks: Mapping[TopicPartition, int]) -> None:
    """Raise Fenced unless every lane stands where the batch begins.

    A lane that is covered while another is not is fenced too: its rows in the batch may be older
    than what the table holds, and writing them would bring old rows back.
    """
    for lane, span in batch.lanes.items():
        if (mark := marks.get(lane, NO_OFFSET)) != span.after:
            raise Fenced(f"{batch.target}: lane {lane} stands at {mark}, expected {span.after}")
