"""A table's history held against what we know to have published: is it still ours to go on from?

The marks say what a table contains; the history says whether they can be trusted to be all. Where
others expired the snapshot that carried them, the recorded marks take their place, but only if the
history that is left begins right behind the recorded snapshot: then nothing of ours came after.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import takewhile
from typing import Any

import structlog

from actors.contract.ports import LostRace
from changes.model import TargetName
from offsets.fence import Marks
from offsets.snapshot import TargetMark
from sparkwriter.iceberg.catalog import LakeCatalog
from sparkwriter.iceberg.java import LakeTable
from sparkwriter.iceberg.look import MODE, Seen, look
from sparkwriter.iceberg.marks import HWM, nearest_mark
from sparkwriter.iceberg.publish import MAIN, restamp
from sparkwriter.kit.store import Absent

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
