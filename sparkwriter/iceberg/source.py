"""Which of the source's tables a table in the lake is of: one, unless its route merges several.

Kept with the table, so that two tables whose names lead to one target are told apart by whoever
writes it, after a restart and in another member too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from actors.contract.ports import StagedBatch, TargetRefused
from changes.model import TableName
from sparkwriter.iceberg.java import LakeTable

SOURCE = "binlogd.source"
"""Table property: the source's table, ``["database", "table"]``. A table without it takes the
first one that writes."""


def source_text(table: TableName | None) -> Mapping[str, str]:
    """The property that says it; none where it is not known, or several."""
    return {} if table is None else {SOURCE: json.dumps(table, ensure_ascii=False)}


def source_of(table: LakeTable, renaming: Mapping[str, Any] | None) -> TableName | None:
    """What a table says. ``renaming``: how it got the name that it has, where that is not noted."""
    said = (renaming or {}).get("source") or json.loads(table.property(SOURCE) or "null")
    return None if said is None else TableName(*map(str, said))


def source_after(batch: StagedBatch, before: TableName | None) -> TableName | None:
    """Which table it is of once the batch is published."""
    return batch.becomes or batch.table or before


def check_source(batch: StagedBatch, held: TableName | None) -> None:
    """Raise TargetRefused where the batch is of another table than the target."""
    if batch.table is None or held is None or batch.table == held:
        return
    raise TargetRefused(
        f"it is of the table {held}, and {batch.table} leads to the same target: `exclude` one of "
        "them, or give it a route with a target of its own. Should the table have another name "
        f"now, unknown to binlogd: remove the table property {SOURCE}, and the next one is taken"
    )
