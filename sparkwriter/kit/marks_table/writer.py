"""The sink of one writer over tables that a ledger keeps the marks of."""

from __future__ import annotations

from collections.abc import Sequence

from actors.contract.ports import OneFailed
from actors.contract.writes import StagedBatch, Swap, TargetState
from changes.model.errors import SinkUnavailable, TargetRefused
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

    def write_together(self, batches: Sequence[StagedBatch]) -> list[TargetState]:
        """See ``actors.contract.ports.WritesTogether``."""
        at: TargetName | None = None
        try:
            for batch in batches:
                at = batch.target
                self._prepare(batch)
            # In one order for all: two that lock the same tables then wait for each other in turn.
            states: dict[TargetName, TargetState] = {}
            with self.tables.call(batches[0].target), self.tables.together():
                for batch in sorted(batches, key=lambda batch: batch.target):
                    at = batch.target
                    states[at] = self.write(batch)
                at = None
        except (SinkUnavailable, TargetRefused, Fenced) as error:
            raise OneFailed(at) from error
        return [states[batch.target] for batch in batches]

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
