"""What the sink sees when it looks at a target: a table of ours with its marks, or none."""

from __future__ import annotations

import json
from dataclasses import replace

from actors.contract.ports import TargetRefused
from changes.model import Mode, TargetName
from offsets.fence import Marks
from offsets.position import still_open
from offsets.rollback import ways_out
from sparkwriter.iceberg.catalog import LakeCatalog
from sparkwriter.iceberg.java import LakeTable
from sparkwriter.iceberg.marks import HWM, nearest_mark
from sparkwriter.iceberg.publish import MAIN
from sparkwriter.iceberg.source import source_of
from sparkwriter.kit.store import Absent, Existing
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
SHAPE = "binlogd.shape"
"""Table property: the fingerprint of the shape that the rows have (``changes.shaping``)."""
LABELS = "binlogd.labels"
"""Table property: the labels of its enumerations, a JSON object of types by column."""
RENAMING = "binlogd.renaming"
"""Table property: ``{"to": name, "marks": …, "source": …}``. Once the table has that name it
contains these marks too, and is of that table of the source: so the renaming itself, one step of
the catalog, publishes them."""

NOT_OURS = (
    "the table exists and was not made by binlogd: give the route another target, or rename or drop"
    " that table"
)


class Seen(Existing[LakeTable]):
    """One look at a table of ours. Its version is the snapshot that main showed."""

    __slots__ = ()

    @property
    def main(self) -> int:
        """That snapshot's id."""
        return int(self.version)


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
        raise TargetRefused(NOT_OURS)
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
    return Seen(
        target,
        table,
        StoredTable(table.columns(), Mode(mode), keys),
        marks,
        str(main),
        renamed=renamed,
        dropped=table.property(DROPPED),
        positions=table.property(POSITIONS),
        differs=table.property(DIFFERS),
        source=source_of(table, renaming if renamed else None),
        shape=table.property(SHAPE) or "",
        labels=table.property(LABELS) or "",
    )
