"""Tables of a database that keeps their marks in a ledger table beside them.

Each method of ``TableStore`` is said here in operations and entries, which the database carries out
in one step. What that step is, a transaction or one that is stamped and repeated, is the
database's.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

import pyarrow as pa
import structlog

from actors.contract.ports import SwapTooEarly
from actors.contract.writes import StagedBatch, Swap, TargetState
from changes.model.errors import TargetRefused
from changes.model.model import Mode, TargetName
from changes.sql.spark.ddl_plan import DdlTable
from changes.sql.spark.schema import LakeColumn, SchemaStep
from offsets.fence import Marks, of_streams
from offsets.snapshot import TargetMark
from sparkwriter.kit.marks_table.table_description import (
    Drop,
    Entry,
    Forgets,
    Frees,
    Make,
    Operation,
    Remake,
    Rename,
    Row,
    Shows,
    TakeAbove,
    TakeOver,
    WriteRows,
    changed,
    new_table,
    with_columns,
    with_facts,
)
from sparkwriter.kit.store import (
    DROP_BY_HAND,
    Absent,
    Capabilities,
    Facts,
    TableChange,
    hangs_on_it,
    nothing_rebuilt,
)

log: Any = structlog.get_logger(__name__)


class LedgeredStore(ABC):
    """``sparkwriter.kit.store.TableStore`` over a ledger. One writer's, on its thread."""

    capabilities = Capabilities(positions=False, history=False)

    # --- what a database does itself

    @abstractmethod
    def call(self, target: TargetName) -> AbstractContextManager[None]:
        """See ``TableStore.call``."""

    @abstractmethod
    def look(self, target: TargetName) -> Row | Absent:
        """See ``TableStore.look``."""

    @abstractmethod
    def step(
        self,
        operations: Sequence[Operation],
        entries: Sequence[Entry],
        seen: Sequence[Row] = (),
        absent: TargetName | None = None,
    ) -> str:
        """Carry out all of it in one step, and give the version that the first entry's target has
        then. Raises LostRace where a row is not as it was seen, or the absent target is there."""

    @abstractmethod
    def read_rows(self, seen: Row, keys: pa.Table, columns: Sequence[str]) -> pa.Table:
        """See ``TableStore.read_rows``."""

    @abstractmethod
    def freed(self, target: TargetName) -> str | None:
        """See ``TableStore.freed``."""

    @abstractmethod
    def is_empty(self, seen: Row) -> bool:
        """See ``TableStore.is_empty``."""

    @abstractmethod
    def may_hold_null(self, seen: Row, column: str) -> bool:
        """See ``TableStore.may_hold_null``."""

    @abstractmethod
    def close(self) -> None:
        """Release the connection."""

    exchanges_at_once = True
    """Whether renames and drops of one step happen together, or not at all."""

    leaves_aside: tuple[type[Exception], ...] = (TargetRefused,)
    """What ends the removal of a table that was replaced, and leaves it."""

    def shared(self, target: TargetName) -> Sequence[str]:
        """Why a table is another target's already, which would lose it to one that takes its
        name."""
        return ()

    def hanging(self, target: TargetName) -> Sequence[str]:
        """What hangs on a table, and would go with it when another one takes its name."""
        return ()

    def lacks(self, target: TargetName, into: TargetName, aside: TargetName) -> Sequence[str]:
        """Why this user could not exchange the tables now. One line each."""
        return ()

    def left_behind(self, target: TargetName) -> Sequence[str]:
        """See ``sparkwriter.kit.port.Exchanges``."""
        return ()

    def in_the_way(self, target: TargetName, into: TargetName, aside: TargetName) -> Sequence[str]:
        """See ``sparkwriter.kit.port.Exchanges``."""
        try:
            with self.call(target):
                hanging = self.hanging(target)
                lines = [hangs_on_it(hanging)] if hanging else []
                return [*self.shared(target), *lines, *self.lacks(target, into, aside)]
        except TargetRefused as error:
            return [str(error)]

    def replaced(self, target: TargetName) -> Row | Absent:
        """A look at a table that another one replaces, whatever is wrong with it."""
        return self.look(target)

    # --- what follows from it

    def open(self, target: TargetName, recorded: TargetMark | None) -> Row | Absent:
        """A look: the ledger keeps no history."""
        return self.look(target)

    def create(self, batch: StagedBatch, columns: Sequence[LakeColumn], facts: Facts) -> None:
        """Make the table, unless another did first."""
        made = new_table(batch, columns, facts)
        target = batch.target
        self.step([Make(target, made)], [Shows(target, facts.marks, made)], absent=target)

    def change_schema(self, seen: Row, steps: Sequence[SchemaStep], differs: str | None) -> None:
        """Add and widen columns."""
        made, target = with_columns(seen.table, steps, differs), seen.target
        self.step(
            [Remake(target, seen.table, made)], [Shows(target, seen.marks, made)], seen=[seen]
        )

    def publish(self, seen: Row, batch: StagedBatch, facts: Facts) -> str:
        """Rows and marks."""
        rows = [] if batch.path is None else [WriteRows(seen, batch)]
        shown = Shows(seen.target, facts.marks, with_facts(seen.table, facts))
        return self.step(rows, [shown], seen=[seen])

    def reset(self, seen: Row, marks: Marks) -> str:
        """Move the marks; a changelog's rows above them go."""
        changelog = seen.table.mode is Mode.APPEND
        above = [TakeAbove(seen.target, seen.marks, marks)] if changelog else []
        return self.step(above, [Shows(seen.target, marks, seen.table)], seen=[seen])

    def columns(self, seen: Row) -> DdlTable:
        """The table as statements find it."""
        made = seen.table
        kept, empty = frozenset(made.kept), self.is_empty(seen)
        return DdlTable(made.fields, made.keys, kept, empty=empty)

    def change(self, seen: Row, change: TableChange) -> None:
        """Columns and marks."""
        made = changed(seen.table, change)
        remake = Remake(seen.target, seen.table, made, change.after.emptied)
        self.step([remake], [Shows(seen.target, change.facts.marks, made)], seen=[seen])

    def move(self, seen: Row, to: TargetName, change: TableChange, left: Marks) -> None:
        """The same, and the name."""
        made = changed(seen.table, change)
        remake = Remake(seen.target, seen.table, made, change.after.emptied)
        marks = seen.marks.with_name(change.facts.marks)
        self.step(
            [remake, Rename(seen.target, to, made)],
            [Shows(to, marks, made), Shows(seen.target, left, None)],
            seen=[seen],
        )

    def set_aside(self, seen: Row, aside: TargetName) -> None:
        """Another name for the table; its own keeps the marks."""
        self.step(
            [Rename(seen.target, aside, seen.table)],
            [Shows(aside, seen.marks, seen.table), Shows(seen.target, seen.marks, None)],
            seen=[seen],
        )

    def drop(self, seen: Row, marks: Marks) -> None:
        """Take the table away."""
        self.step([Drop(seen.target)], [Shows(seen.target, marks, None)], seen=[seen])

    def prepare(self, seen: Row, batch: StagedBatch) -> None:
        """What ``publish`` would do to the table before its step: nothing."""
        return None

    def is_away(self, target: TargetName) -> bool:
        """Its errors say so themselves."""
        return False

    def together(self, locks_s: float) -> AbstractContextManager[None]:
        """Steps that are carried out inside are one. ``locks_s``: as of ``write_together``. Raises
        LostRace for one that can't be. Only of sinks whose section says that they have
        ``transactions``."""
        raise NotImplementedError

    def part(self) -> AbstractContextManager[None]:
        """One step of those: where it waits for another table's rows, it alone is taken back."""
        return nullcontext()

    def bury(self, target: TargetName, marks: Marks) -> None:
        """Have a name that no table has show the marks."""
        self.step([], [Shows(target, marks, None)])

    def free(self, target: TargetName, renaming: str) -> None:
        """Note which renaming may take the name."""
        self.step([], [Frees(target, renaming)])

    def filled(self, seen: Row) -> frozenset[str]:
        """None: the tables that binlogd makes have no defaults."""
        return frozenset()

    def added_otherwise(self, seen: Row, batch: StagedBatch) -> list[str]:
        """Nothing: without positions a target is of one table, whose columns come in order."""
        return []

    def swap(self, swap: Swap) -> TargetState:
        """A rebuilt table takes the old one's name. See ``actors.contract.ports.Swaps``."""
        old, new = self.replaced(swap.old), self.look(swap.new)
        if not isinstance(new, Absent):
            self._exchange(swap, old, new)
        elif isinstance(old, Absent) or old.table.rebuilt != str(swap.new):
            raise TargetRefused(nothing_rebuilt(swap))
        if not swap.keep_old and not self.exchanges_at_once:
            self._remove_aside(swap.aside)
        return self.look(swap.old).state

    def remove(self, target: TargetName) -> None:
        """A table that was not exchanged goes, and what is known of it."""
        here = self.replaced(target)
        there = [] if isinstance(here, Absent) else [here]
        self.step([Drop(row.target) for row in there], [Forgets(target)], seen=there)

    def _exchange(self, swap: Swap, old: Row | Absent, new: Row) -> None:
        marks = new.marks.lifted(old.marks)
        held = of_streams(old.marks.offsets)
        if any(at >= swap.frontiers.get(lane, 0) for lane, at in held.items()):
            raise SwapTooEarly(held)
        if not isinstance(old, Absent):
            self._refuse_exchange(swap.old)
        made = replace(new.table, rebuilt=str(swap.new))
        operations: list[Operation] = [Rename(swap.new, swap.old, made)]
        entries: list[Entry] = [Shows(swap.old, marks, made), Forgets(swap.new)]
        seen = [new]
        if not isinstance(old, Absent):
            seen.append(old)
            if left := self.left_behind(swap.old):
                log.warning("left_behind", target=str(swap.old), to_be_made_again=list(left))
            over = TakeOver(swap.new, swap.old)
            operations = [over, Rename(swap.old, swap.aside, old.table), *operations]
            if swap.keep_old or not self.exchanges_at_once:
                entries.append(Shows(swap.aside, old.marks, old.table))
            else:
                operations.append(Drop(swap.aside))
                entries.append(Forgets(swap.aside))
        self.step(operations, entries, seen=seen)

    def _refuse_exchange(self, old: TargetName) -> None:
        """Raise TargetRefused where a table can't be replaced."""
        if shared := self.shared(old):
            raise TargetRefused("; ".join(shared))
        if hanging := self.hanging(old):
            raise TargetRefused(hangs_on_it(hanging))

    def _remove_aside(self, aside: TargetName) -> None:
        """The exchange is made, and can't be taken back: what stays of the old table is named."""
        try:
            self.remove(aside)
        except self.leaves_aside as error:
            log.error("table_left", table=str(aside), reason=str(error), command=DROP_BY_HAND)
