"""The one loop of every sink: look, covered?, check, plan, publish."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Generic

import structlog

from actors.contract.one_lane import check_one_lane
from actors.contract.writes import StagedBatch, TargetState
from actors.staging.staged_tables import ParquetTables, StagedTables
from changes.model.errors import SinkUnavailable, TargetRefused
from changes.model.model import POSITION, DropTable, TargetName
from changes.sql.spark.schema import CreateTable, missing_columns, plan_schema
from offsets.fence import of_streams
from offsets.snapshot import MarkMoves, TargetMark
from sparkwriter.kit.divergence import labels_after, mark_after, mark_of_new
from sparkwriter.kit.filtered import decided
from sparkwriter.kit.shape import check_reset, check_shape, check_whole, shape_after
from sparkwriter.kit.statements import Statements, check_source, source_after
from sparkwriter.kit.store import Absent, Capabilities, Delivery, E, Existing, Facts, TableStore

# Refusing by name what a sink can't do.


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


log: Any = structlog.get_logger(__name__)

SETTLE_ATTEMPTS = 5
"""Looks at a table before a write until nothing is to be changed in its schema: one when it
fits, two after a change, more only where others change it at the same time."""


class TargetWriter(Generic[E]):
    """``actors.contract.ports.ResettableSink`` over a sink's tables. One writer's thread."""

    def __init__(self, store: TableStore[E], files: StagedTables | None = None) -> None:
        """``files``: where staged files are, this machine's by default."""
        self._store = store
        self._files = files or ParquetTables()
        self._statements = Statements(store)

    def open(self, target: TargetName, recorded: TargetMark | None = None) -> TargetState:
        """Read schema, mode and marks from the sink. See ``BatchWriter.open``."""
        store = self._store
        known = recorded if store.capabilities.history else None
        with store.call(target):
            return store.open(target, known).state

    def write(self, batch: StagedBatch) -> TargetState:
        """Publish the batch with its marks in one step. See ``BatchWriter.write``."""
        store, target = self._store, batch.target
        with store.call(target):
            check_capable(batch, store.capabilities)
            if batch.is_barrier:
                return self._statements.write(batch)
            seen, covered = self._fitting(batch)
            return replace(seen.state, covered=True) if covered else self._publish(seen, batch)

    def _fitting(self, batch: StagedBatch) -> tuple[E, bool]:
        """The target's table once it can take the batch, and whether it holds that already."""
        store, target = self._store, batch.target
        for _ in range(SETTLE_ATTEMPTS):
            here = store.look(target)
            seen = None if isinstance(here, Absent) else here
            if seen is not None and seen.marks.cover(batch):
                return seen, True
            here.marks.check(batch)
            if seen is not None and seen.dropped and batch.path is not None:
                self._statements.move_aside(seen)
            elif self._fits(batch, here):
                assert seen is not None
                return seen, False
        raise SinkUnavailable(f"{target}: others keep changing the table's schema")

    def reset(self, target: TargetName, moves: MarkMoves) -> TargetState:
        """Move the marks, and take what is to be written again. See ``ResettableSink.reset``."""
        store = self._store
        with store.call(target):
            here = store.look(target)
            before, after = here.marks.offsets, moves.of(here.marks.offsets)
            if after == before:
                return replace(here.state, covered=True)
            if not isinstance(here, Absent):
                check_reset(here.shape, before, after)
            marks = here.marks.at(after)
            if isinstance(here, Absent):
                store.bury(target, marks)
                return store.look(target).state
            return replace(here, marks=marks, version=store.reset(here, marks)).state

    def _fits(self, batch: StagedBatch, here: E | Absent) -> bool:
        """Whether the table can take the batch as it is. Else it is made or altered, unless another
        did it first: the next look will tell. Raises TargetRefused."""
        store, seen = self._store, None if isinstance(here, Absent) else here
        check_source(batch, seen.source if seen else None)
        if seen is not None:
            check_shape(batch, seen.shape)
            check_whole(store, batch, seen)
            check_positions(batch, seen)
        kept = seen.positions if seen else batch.positions
        if store.capabilities.delivery is Delivery.IDEMPOTENT:
            kept = None
        held = None if seen is None else seen.spread
        check_one_lane(batch, of_streams(here.marks.offsets), kept, held)
        steps = plan_schema(batch.schema, batch.mode, seen.stored if seen else None)
        if seen is None:
            (create,) = steps
            assert isinstance(create, CreateTable)
            facts = Facts(here.marks, mark_of_new(batch), batch.table, batch.shape)
            store.create(batch, create.columns, facts)
        elif steps:
            store.change_schema(seen, steps, mark_after(store, seen, batch))
        return seen is not None and not steps

    def _publish(self, seen: E, batch: StagedBatch) -> TargetState:
        differs = mark_after(self._store, seen, batch)
        source, shape = source_after(batch, seen.source), shape_after(batch, seen.shape)
        if shape != seen.shape:
            log.warning("route_shows_more_columns", target=str(batch.target))
        spread = "" if batch.key_partitioning is None else batch.key_partitioning.text()
        labels = labels_after(batch, seen)
        facts = Facts(seen.marks.after(batch), differs, source, shape, labels, spread)
        ready = decided(self._store, self._files, seen, batch)
        try:
            version = self._store.publish(seen, ready, facts)
        finally:
            if ready.path is not None and ready.path != batch.path:
                self._files.remove(ready.path)
        shown = replace(seen, key_partitioning=spread or seen.key_partitioning)
        return replace(shown, marks=facts.marks, differs=differs, version=version).state


def check_positions(batch: StagedBatch, seen: Existing) -> None:  # type: ignore[type-arg]
    """Raise TargetRefused where the target keeps positions that the batch does not carry."""
    kept = seen.positions
    if kept is not None and POSITION not in {column.name for column in seen.stored.columns}:
        raise TargetRefused(missing_columns([POSITION]))
    if batch.path is not None and kept is not None and batch.positions != kept:
        raise TargetRefused(
            f"the table keeps the positions {kept} of its rows, the changes carry"
            f" {batch.positions or 'none'}"
        )
