"""Refusing by name what a sink can't do."""

from __future__ import annotations

from actors.contract.ports import TargetRefused
from actors.contract.writes import StagedBatch
from changes.model import DropTable
from sparkwriter.kit.store import Capabilities


def check_capable(batch: StagedBatch, can: Capabilities) -> None:
    """Raise TargetRefused where the batch asks for what the sink does not have."""
    if batch.partial and not can.partial_rows:
        raise TargetRefused(
            f"rows come without the columns {', '.join(batch.partial)}, and this sink can't keep "
            "what is stored in them: have the source send whole rows (binlog_row_image = FULL, "
            "REPLICA IDENTITY FULL), or use another sink"
        )
    if batch.positions is not None and not can.positions:
        raise TargetRefused("this sink keeps no source positions: set positions to none")
    if batch.changes_name and not can.rename:
        raise TargetRefused(
            "the source renames the table, which this sink can't follow: give the new name a "
            "route with a target of its own"
        )
    drops = (step for steps in batch.ddl for step in steps if isinstance(step, DropTable))
    if not can.drop and any(not step.keep for step in drops):
        raise TargetRefused(
            'the source drops the table, which this sink can\'t follow: set ddl.drop_table = "keep"'
        )
