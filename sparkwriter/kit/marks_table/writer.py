"""The sink of one writer over tables that a ledger keeps the marks of."""

from __future__ import annotations

from actors.contract.writes import Swap, TargetState
from changes.model.model import TargetName
from sparkwriter.kit.marks_table.store import LedgeredStore
from sparkwriter.kit.marks_table.table_description import Row
from sparkwriter.kit.together import TogetherWriter


class LedgeredWriter(TogetherWriter[Row]):
    """The sink of one writer: the kit's loop, and tables that change places."""

    def __init__(self, store: LedgeredStore) -> None:
        super().__init__(store)
        self.tables = store

    def swap(self, swap: Swap) -> TargetState:
        """See ``actors.contract.ports.Swaps``."""
        with self.tables.call(swap.old):
            return self.tables.swap(swap)

    def remove(self, target: TargetName) -> None:
        """See ``actors.contract.ports.Swaps``."""
        with self.tables.call(target):
            self.tables.remove(target)
