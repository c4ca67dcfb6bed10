"""Which of the source's tables a target is of: one, unless its route merges several.

Kept with the target, so that two tables whose names lead to one target are told apart by whoever
writes it, after a restart and in another member too.
"""

from __future__ import annotations

from actors.contract.ports import TargetRefused
from actors.contract.writes import StagedBatch
from changes.model import TableName


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
        "now, unknown to binlogd: remove its property binlogd.source, and the next one is taken"
    )
