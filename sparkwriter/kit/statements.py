"""DDL: each statement lands once, whatever crashes between.

Inside a table one step of the sink changes columns and shows the statement's mark. A renaming is of
two names. None of it begins before the new name's own target has come to the statement, and says
so beside the tables (``TableStore.free``): it would else take the name from changes that still
wait, and those would count as done. Then the table moves, and both names show it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Generic

import structlog

from actors.contract.writes import StagedBatch, TargetState
from changes.model.errors import SinkUnavailable, TargetRefused, WaitsForName
from changes.model.model import DropTable, TableName, TargetName
from changes.sql.spark.ddl_plan import ASIDE, DdlTable, apply_ddl
from offsets.fence import Marks, place_of, place_text
from settings.shell import quoted_pattern
from sparkwriter.kit.divergence import mark_after
from sparkwriter.kit.shape import check_shape
from sparkwriter.kit.store import Absent, E, Facts, TableChange, TableStore

log: Any = structlog.get_logger(__name__)

_LOAD_IT = "nothing, where the source's table was empty; else `binlogd tables load {}`"

# Which of the source's tables a target is of: one, unless its route merges several.


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


class Statements(Generic[E]):
    """Carries out the batches of one writer that are DDL. Used by the writer's thread."""

    def __init__(self, store: TableStore[E]) -> None:
        self._store = store

    def write(self, batch: StagedBatch) -> TargetState:
        """Do what the batch's statements ask for. Raises as ``BatchWriter.write``."""
        here = self._store.look(batch.target)
        if not batch.changes_name:
            return self._inside(batch, here)
        if here.marks.show_renaming(batch):
            return replace(self._settle(batch, here), covered=True)
        here = self._made_anew(batch, here)
        if batch.moves_to is not None and not isinstance(here, Absent):
            self._move(batch, here, batch.moves_to)
            here = self._store.look(batch.target)
        if batch.takes_from is None:
            return self._gone(batch, here)
        return self._take(batch, here, batch.takes_from)

    def move_aside(self, seen: E) -> None:
        """Give a kept table another name, because the source has recreated its own."""
        assert seen.dropped is not None
        number = seen.dropped.rpartition(":")[2]
        aside = seen.target._replace(table=f"{seen.target.table}{ASIDE}{number}")
        self._store.set_aside(seen, aside)

    def _set_aside(self, seen: E, to: TargetName, place: str) -> None:
        """Its new name has a table that was loaded behind the renaming, with all that this one
        held. It is kept: should that not be so, nothing is lost."""
        aside = seen.target._replace(table=f"{seen.target.table}{ASIDE}{place}")
        self._store.set_aside(seen, aside)
        fields = {"renamed_to": str(to), "kept_as": str(aside)}
        log.warning("replaced_by_a_load", target=str(seen.target), **fields)

    # --- inside a table

    def _inside(self, batch: StagedBatch, here: E | Absent) -> TargetState:
        if here.marks.cover(batch):
            return replace(here.state, covered=True)
        here.marks.check(batch)
        here = self._made_anew(batch, here)
        if isinstance(here, Absent):
            return self._gone(batch, here)
        check_source(batch, None if here.dropped else here.source)
        check_shape(batch, here.shape)
        before, after = self._planned(batch, here)
        if after.dropped is None:
            self._store.drop(here, _marks(batch, here))
        else:
            mark = None if after.emptied else mark_after(self._store, here, batch)
            facts = Facts(_marks(batch, here), mark, source_after(batch, here.source), here.shape)
            self._store.change(here, TableChange(before, after, facts, _dropped_at(batch, after)))
        return self._store.look(batch.target).state

    def _made_anew(self, batch: StagedBatch, here: E | Absent) -> E | Absent:
        """A statement about a table that was dropped before is about its successor."""
        if isinstance(here, Absent) or here.dropped is None:
            return here
        stays = batch.moves_to is None and batch.takes_from is None
        if stays and all(isinstance(step, DropTable) for steps in batch.ddl for step in steps):
            return here
        here.marks.check(batch)
        self.move_aside(here)
        return self._store.look(batch.target)

    def _settle(self, batch: StagedBatch, here: E | Absent) -> TargetState:
        """A table that was given its name contains the marks of that: now they get a step.

        With a renaming amid a message those are short of it, also where no more of it follows.
        """
        marks = here.marks.after(batch)
        if not isinstance(here, Absent) and (here.renamed or marks.text() != here.marks.text()):
            same = self._store.columns(here)
            facts = Facts(marks, here.differs, here.source, here.shape)
            self._store.change(here, TableChange(same, same, facts, here.dropped))
        return self._store.look(batch.target).state

    # --- names

    def _move(self, batch: StagedBatch, seen: E, to: TargetName) -> None:
        seen.marks.check(batch)
        check_source(batch, seen.source)
        check_shape(batch, seen.shape)
        ((lane, _),) = batch.lanes.items()
        there = self._store.look(to)
        if not isinstance(there, Absent):
            if there.marks.are_past(batch):
                self._set_aside(seen, to, place_text(batch))
                return
            raise WaitsForName(f"waits until {to}, which is to be its name, is free", to)
        if self._store.freed(to) != f"{lane}:{place_text(batch)}":
            raise WaitsForName(f"waits until what {to} was before is written", to)
        before, after = self._planned(batch, seen)
        differs = mark_after(self._store, seen, batch)
        # Whose it is, too: under its old name, should it keep that, it is still of the old table.
        facts = Facts(Marks.renamed_by(batch), differs, batch.becomes, seen.shape)
        change = TableChange(before, after, facts, _dropped_at(batch, after))
        self._store.move(seen, to, change, _marks(batch, seen))

    def _gone(self, batch: StagedBatch, here: E | Absent) -> TargetState:
        """There was no table to rename or drop. Targets that wait for it must still learn that."""
        if not isinstance(here, Absent):
            raise SinkUnavailable("the table came back meanwhile")
        if not here.marks.cover(batch):
            here.marks.check(batch)
            self._store.bury(batch.target, _marks(batch, here))
        return self._store.look(batch.target).state

    def _take(self, batch: StagedBatch, here: E | Absent, of: TargetName) -> TargetState:
        """Make room for the table ``of``, and wait until it has come."""
        ((lane, _),) = batch.lanes.items()
        if here.marks.of(lane) != place_of(batch) - 1:
            here.marks.check(batch)
        if not isinstance(here, Absent):
            raise TargetRefused(f"{of} is renamed to it, and it exists already")
        self._store.free(batch.target, f"{lane}:{place_text(batch)}")
        other = self._store.look(of)
        if not other.marks.are_past(batch):
            raise WaitsForName(f"waits until {of} has its name", of)
        here = self._store.look(batch.target)
        if not isinstance(here, Absent):
            return self._settle(batch, here)
        if not isinstance(other, Absent):
            # It may have been made after the renaming of an empty table, or loaded behind it: then
            # what it held is nowhere, and no mark can say so of a table that is not there.
            fields = {
                "renamed_from": str(of),
                "help": _LOAD_IT.format(quoted_pattern(batch.target)),
            }
            log.warning("renamed_without_a_table", target=str(batch.target), **fields)
        self._store.bury(batch.target, here.marks.after(batch))
        return self._store.look(batch.target).state

    def _planned(self, batch: StagedBatch, seen: E) -> tuple[DdlTable, DdlTable]:
        """The table before and after the batch's statements."""
        before = self._store.columns(seen)
        aside = f"{ASIDE}{place_text(batch)}"
        return before, apply_ddl(before, batch.ddl, seen.stored.mode, aside)


def _dropped_at(batch: StagedBatch, after: DdlTable) -> str | None:
    ((lane, _),) = batch.lanes.items()
    return f"{lane}:{place_text(batch)}" if after.dropped else None


def _marks(batch: StagedBatch, here: E | Absent) -> Marks:
    """The marks after the batch. A name that is taken again is only done when that has come."""
    return here.marks.after(batch, waits=batch.takes_from is not None)
