"""What the sink sees when it looks at a target: a table of ours with its marks, or none."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace

from actors.contract.ports import TargetRefused, TargetState
from changes.model import Mode, TableName, TargetName
from offsets.fence import Marks
from offsets.position import still_open
from offsets.rollback import ways_out
from sparkwriter.iceberg.catalog import LakeCatalog
from sparkwriter.iceberg.java import LakeTable
from sparkwriter.iceberg.marks import HWM, nearest_mark
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
    marks: Marks
    renamed: bool = False
    dropped: str | None = None
    positions: str | None = None
    parted: bool = False
    differs: str | None = None
    """What may have changed its stored rows at the source alone."""
    source: TableName | None = None
    """The table that it is of, None where that is not known or several."""

    @property
    def state(self) -> TargetState:
        """What the processor hears."""
        return replace(self.state_at(self.marks, self.main), parted=self.parted)

    def state_at(self, marks: Marks, main: int) -> TargetState:
        """What it hears once main shows another snapshot, with these marks."""
        schema, mode = self.stored.schema, self.stored.mode
        offsets, steps = marks.offsets, marks.steps
        state = TargetState(schema, mode, offsets, str(main), self.positions, steps)
        return replace(state, rows_may_differ=self.differs)


@dataclass(frozen=True, slots=True)
class Absent:
    """There is no such table. It has marks where a DDL took it away."""

    marks: Marks = field(default_factory=Marks)

    @property
    def state(self) -> TargetState:
        """What the processor hears."""
        return TargetState(hwms=self.marks.offsets, steps=self.marks.steps)


def look(
    catalog: LakeCatalog, target: TargetName, loaded: LakeTable | None = None
) -> Seen | Absent:
    """Read a target from the catalog. Raises TargetRefused, and JavaFailure.

    ``loaded``: its table, where it has just been loaded.
    """
    table = loaded or catalog.load(target)
    if table is None:
        gone = catalog.gone(target)
        return Absent() if gone is None else Absent(Marks.parse(gone))
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
    marks = Marks.parse(mark.text)
    text = table.property(RENAMING)
    renaming = {} if text is None else json.loads(text)
    renamed = renaming.get("to") == str(target)
    if renamed:
        marks = marks.with_name(Marks.parse(json.dumps(renaming["marks"])))
    marks = replace(marks, steps=still_open(marks.steps, marks.offsets))
    stored = StoredTable(table.columns(), Mode(mode), keys)
    dropped, positions = table.property(DROPPED), table.property(POSITIONS)
    found = Seen(table, stored, main, marks, renamed, dropped, positions)
    source = source_of(table, renaming if renamed else None)
    return replace(found, differs=table.property(DIFFERS), source=source)
