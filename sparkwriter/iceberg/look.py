"""What the sink sees when it looks at a target: a table of ours with its marks, or none."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import takewhile
from typing import Any

import structlog

from changes.model.errors import LostRace, TargetRefused
from changes.model.model import Mode, TargetName
from changes.sql.spark.schema import StoredTable
from offsets.fence import Marks
from offsets.position import still_open
from offsets.recovery import ways_out
from offsets.snapshot import TargetMark
from sparkwriter.iceberg.catalog import LakeCatalog
from sparkwriter.iceberg.java import LakeTable
from sparkwriter.iceberg.local_tables import HWM
from sparkwriter.iceberg.marks import nearest_mark
from sparkwriter.iceberg.ownership import source_of
from sparkwriter.iceberg.publish import MAIN, restamp
from sparkwriter.kit.store import Absent, Existing

MODE = "binlogd.mode"
KEYS = "binlogd.keys"
POSITIONS = "binlogd.positions"
"""Table property: the source positions that the table keeps of each row."""
KEPT = "binlogd.kept-columns"
"""Table property: the columns that the source has dropped and the table keeps, a JSON list."""
DROPPED = "binlogd.dropped"
"""Table property: the offset of the DROP of the source's table, as ``topic:partition:offset``."""
DIFFERS = "binlogd.rows-may-differ"
"""Table property: what may have changed stored rows at the source alone (``offsets.snapshot``)."""
SHAPE = "binlogd.shape"
"""Table property: the fingerprint of the shape that the rows have (``changes.routes.shaping``)."""
LABELS = "binlogd.labels"
"""Table property: the labels of its enumerations, a JSON object of types by column."""
KEY_PARTITIONING = "binlogd.key-partitioning"
"""Table property: how its keys are spread over partitions (``offsets.key_partitioning``)."""
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
            " rolled back beyond the first), so what the table contains is unknown."
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
        key_partitioning=table.property(KEY_PARTITIONING) or "",
    )


# A table's history held against what we know to have published: is it still ours to go on from?

log: Any = structlog.get_logger(__name__)


def look_back(
    catalog: LakeCatalog, target: TargetName, recorded: TargetMark, new_branch: Callable[[], str]
) -> Seen | Absent:
    """Look at a target whose last published version is known. Raises as ``look``, SinkUnavailable.

    Lost marks are put back; ``Seen.diverged`` tells that the history is whole without that version.
    """
    assert recorded.version is not None
    table = catalog.load(target)
    main = None if table is None else table.head(MAIN)
    if table is None or main is None or str(main) == recorded.version:
        return look(catalog, target, table)
    history = table.ancestors()
    known = recorded.version in map(str, history)
    if known and table.property(MODE) is not None and nearest_mark(table, main) is None:
        above = takewhile(lambda snapshot: str(snapshot) != recorded.version, history)
        catalog.foreign.tell(target, table, above)
        _put_back(table, main, target, recorded, new_branch())
    here = look(catalog, target)
    whole = table.holds(history[-1])
    if isinstance(here, Seen) and whole and not known:
        return replace(here, diverged=True)
    return here


def _put_back(
    table: LakeTable, main: int, target: TargetName, recorded: TargetMark, branch: str
) -> None:
    try:
        restamp(table, branch, main, (HWM, Marks(recorded.hwms).text()))
    except LostRace:
        return  # another member did it first, or wrote on: the next look tells
    fields = {"target": str(target), "recorded": recorded.version}
    log.warning("marks_put_back", **fields, reason="the snapshot with the marks was expired")
