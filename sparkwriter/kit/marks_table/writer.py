"""The sink of one writer over tables that a ledger keeps the marks of."""

from __future__ import annotations

import math
from collections.abc import Sequence

from actors.contract.ports import OneFailed
from actors.contract.writes import StagedBatch, Swap, TargetState
from changes.model.errors import SinkUnavailable, TargetRefused, WaitsForRows
from changes.model.model import TargetName
from offsets.fence import Fenced
from sparkwriter.kit.marks_table.store import LedgeredStore
from sparkwriter.kit.marks_table.table_description import Row
from sparkwriter.kit.writer import TargetWriter, check_capable


class LedgeredWriter(TargetWriter[Row]):
    """The sink of one writer: the kit's loop, and tables that change places."""

    def __init__(self, store: LedgeredStore) -> None:
        super().__init__(store)
        self.tables = store

    def swap(self, swap: Swap) -> TargetState:
        """See ``actors.contract.ports.Swaps``."""
        with self.tables.call(swap.old):
            return self.tables.swap(swap)

    def write_together(
        self, batches: Sequence[StagedBatch], locks_s: float = math.inf
    ) -> list[TargetState]:
        """See ``actors.contract.ports.WritesTogether``."""
        at: TargetName | None = None
        try:
            for batch in batches:
                at = batch.target
                self._prepare(batch)
            at = None
            # In one order for all: two that lock the same tables then wait for each other in turn.
            waiting = sorted(batches, key=lambda batch: batch.target)
            states: dict[TargetName, TargetState] = {}
            with self.tables.call(batches[0].target), self.tables.together(locks_s):
                while waiting:
                    waiting = self._write_all(waiting, states)
        except (SinkUnavailable, TargetRefused, Fenced) as error:
            raise OneFailed(at) from error
        return [states[batch.target] for batch in batches]

    def _write_all(
        self, batches: Sequence[StagedBatch], states: dict[TargetName, TargetState]
    ) -> list[StagedBatch]:
        """Within the transaction. Returns those whose rows wait for another's, which have another
        try behind the others. Raises OneFailed, also where all of them wait."""
        waiting: list[StagedBatch] = []
        first: WaitsForRows | None = None
        for batch in batches:
            try:
                with self.tables.part():
                    states[batch.target] = self.write(batch)
            except WaitsForRows as error:
                first = first or error
                waiting.append(batch)
            except (SinkUnavailable, TargetRefused, Fenced) as error:
                raise OneFailed(batch.target) from error
        if first is not None and len(waiting) == len(batches):
            raise OneFailed(waiting[0].target) from first
        return waiting

    def _prepare(self, batch: StagedBatch) -> None:
        """Make the table, or give it its columns, as far as the batch needs that."""
        with self.tables.call(batch.target):
            check_capable(batch, self.tables.capabilities)
            seen, covered = self._fitting(batch)
            if not covered:
                self.tables.prepare(seen, batch)

    def remove(self, target: TargetName) -> None:
        """See ``actors.contract.ports.Swaps``."""
        with self.tables.call(target):
            self.tables.remove(target)
