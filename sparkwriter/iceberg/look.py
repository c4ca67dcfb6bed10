"""What the sink sees when it looks at a target: a table of ours with its marks, or none."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from actors.contract.ports import Fenced, StagedBatch, Straggler, TargetRefused, TargetState
from changes.model import Mode, TableName, TargetName
from offsets.position import NO_OFFSET, Step, TopicPartition, still_open
from offsets.rollback import ways_out
from sparkwriter.iceberg.catalog import LakeCatalog
from sparkwriter.iceberg.java import LakeTable
from sparkwriter.iceberg.marks import (
    HWM,
    groups_of,
    marks_of,
    marks_text,
    nearest_mark,
    steps_of,
)
from sparkwriter.iceberg.publish import MAIN
from sparkwriter.iceberg.source import source_of
from sparkwriter.sql.schema import StoredTable

MODE = "binlogd.mode"
KEYS = "binlogd.keys"
POSITIONS = "binlogd.positions"
"""Table property: the source positions that the table keeps of each row."""
KEPT = "binlogd.kept-columns"
"""Table property: the columns that the source has dropped and the table keeps, a JSON list."""
DROPPED = "binlogd.dropped"
"""Table property: the offset of the DROP of the source's table, as ``topic:partition:offset``."""
DIFFERS = "binlogd.rows-may-differ"
"""Table property: what may have changed stored rows at the source alone (``offsets.doubts``)."""
RENAMING = "binlogd.renaming"
"""Table property: ``{"to": name, "marks": …, "source": …}``. Once the table has that name it
contains these marks too, and is of that table of the source: so the renaming itself, one step of
the catalog, publishes them."""


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
    groups: Mapping[TopicPartition, str] = field(default_factory=dict)
    """Who moved the marks, where that is known."""
    parted: bool = False
    steps: Mapping[TopicPartition, Step] = field(default_factory=dict)
    """How far the lanes are above their marks, amid a message."""
    differs: str | None = None
    """What may have changed its stored rows at the source alone."""
    source: TableName | None = None
    """The table that it is of, None where that is not known or several."""

    @property
    def state(self) -> TargetState:
        """What the processor hears."""
        return replace(self.state_at(text_now(self), self.main), parted=self.parted)

    def state_at(self, marks: str, main: int) -> TargetState:
        """What it hears once main shows another snapshot, with these marks as text."""
        schema, mode = self.stored.schema, self.stored.mode
        version, steps = str(main), steps_of(marks)
        state = TargetState(schema, mode, marks_of(marks), version, self.positions, steps)
        return replace(state, rows_may_differ=self.differs)


@dataclass(frozen=True, slots=True)
class Absent:
    """There is no such table. It has marks where a DDL took it away."""

    marks: Mapping[TopicPartition, int]
    groups: Mapping[TopicPartition, str] = field(default_factory=dict)
    steps: Mapping[TopicPartition, Step] = field(default_factory=dict)

    @property
    def state(self) -> TargetState:
        """What the processor hears."""
        return TargetState(hwms=self.marks, steps=self.steps)


def look(
    catalog: LakeCatalog, target: TargetName, loaded: LakeTable | None = None
) -> Seen | Absent:
    """Read a target from the catalog. Raises TargetRefused, and JavaFailure.

    ``loaded``: its table, where it has just been loaded.
    """
    table = loaded or catalog.load(target)
    if table is None:
        gone = catalog.gone(target)
        if gone is None:
            return Absent({})
        return Absent(marks_of(gone), groups_of(gone), steps_of(gone))
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
    catalog.foreign.tell(target, table, mark.above)
    marks, groups, steps = marks_of(mark.text), groups_of(mark.text), steps_of(mark.text)
    text = table.property(RENAMING)
    renaming = {} if text is None else json.loads(text)
    renamed = renaming.get("to") == str(target)
    if renamed:
        said = json.dumps(renaming["marks"])
        for lane, offset in marks_of(said).items():
            if offset > marks.get(lane, NO_OFFSET):
                marks[lane], groups[lane] = offset, groups_of(said).get(lane, "")
        steps |= steps_of(said)
    steps = still_open(steps, marks)
    stored = StoredTable(table.columns(), Mode(mode), keys)
    dropped, positions = table.property(DROPPED), table.property(POSITIONS)
    found = Seen(table, stored, main, marks, renamed, dropped, positions, groups, steps=steps)
    source = source_of(table, renaming if renamed else None)
    return replace(found, differs=table.property(DIFFERS), source=source)


def covered(
    batch: StagedBatch,
    marks: Mapping[TopicPartition, int],
    steps: Mapping[TopicPartition, Step],
) -> bool:
    """Whether the target holds just this batch already: its reply was lost.

    Above that, somebody else has gone on: what waits behind this batch would be written again.
    """
    if batch.amid:
        return all(_same(steps.get(lane), batch.step) for lane in batch.lanes)
    return all(marks.get(lane, NO_OFFSET) == span.through for lane, span in batch.lanes.items())


def arrived(
    batch: StagedBatch,
    marks: Mapping[TopicPartition, int],
    steps: Mapping[TopicPartition, Step],
) -> bool:
    """Whether a target shows a renaming, be it by the table that it got from another name: that
    one's marks are short of the message's end, also where no more of it follows."""
    return all(_same(steps.get(lane), batch.step) for lane in batch.lanes) or covered(
        batch, marks, steps
    )


def is_behind(
    batch: StagedBatch,
    marks: Mapping[TopicPartition, int],
    steps: Mapping[TopicPartition, Step],
) -> bool:
    """Whether another target, by its marks and steps, is past the batch's statement."""
    ((lane, _),) = batch.lanes.items()
    if marks.get(lane, NO_OFFSET) >= place_of(batch):
        return True
    shown, step = steps.get(lane), batch.step
    if shown is None or step is None:
        return False
    return shown.offset == step.offset and shown.done >= step.done


def _same(shown: Step | None, step: Step | None) -> bool:
    return shown is not None and step is not None and shown[:2] == step[:2]


def text_now(here: Seen | Absent) -> str:
    """The marks as they are, as a summary holds them."""
    return marks_text(here.marks, here.groups, here.steps)


def text_after(batch: StagedBatch, here: Seen | Absent, waits: bool = False) -> str:
    """The marks after the batch, as a summary holds them; its own are its group's.

    ``waits``: each of them is short by one, for something of the batch has yet to happen.
    """
    moved = {lane: span.through for lane, span in batch.lanes.items()}
    if waits:
        moved = dict.fromkeys(moved, place_of(batch) - 1)
    marks = {**here.marks, **moved}
    by = {
        lane: batch.group
        for lane, mark in moved.items()
        if batch.step is not None or mark != here.marks.get(lane)
    }
    steps = still_open(here.steps, marks)
    if batch.step is not None and batch.amid and not waits:
        steps |= dict.fromkeys(batch.lanes, batch.step)
    return marks_text(marks, {**here.groups, **by}, steps)


def place_of(batch: StagedBatch) -> int:
    """The offset of a write of one message."""
    ((_, span),) = batch.lanes.items()
    return span.through if batch.step is None else batch.step.offset


def place_text(batch: StagedBatch) -> str:
    """The same for names that come of a statement: two in one message get two."""
    offset, step = place_of(batch), batch.step
    return str(offset) if step is None else f"{offset}_{step.done}"


def check_expected(
    batch: StagedBatch,
    marks: Mapping[TopicPartition, int],
    groups: Mapping[TopicPartition, str],
    steps: Mapping[TopicPartition, Step],
) -> None:
    """Raise Fenced unless every lane stands where the batch begins; Straggler where those that
    don't were all moved by the batch's own group, or back. ``groups``: who moved the marks.

    A lane that is covered while another is not is fenced too: its rows in the batch may be older
    than what the table holds, and writing them would bring old rows back.
    """
    own: str | None = None
    for lane, span in batch.lanes.items():
        mark, by = marks.get(lane, NO_OFFSET), groups.get(lane, "")
        reach = span.through if batch.step is None else batch.step.offset
        shown = steps.get(lane)
        done = shown.done if shown is not None and shown.offset <= reach else 0
        if mark == span.after and done == batch.begun:
            continue
        if mark != span.after:
            said = f"{batch.target}: lane {lane} stands at {mark}, expected {span.after}"
        else:
            at = reach if shown is None else shown.offset
            said = (
                f"{batch.target}: lane {lane} has {done} entries of offset {at}, expected "
                f"{batch.begun}"
            )
        ahead = mark > span.after or (mark == span.after and done > batch.begun)
        if ahead and (not by or by != batch.group):
            raise Fenced(f"{said} (moved by group {by})" if by else said)
        own = own or said
    if own is not None:
        raise Straggler(own)
