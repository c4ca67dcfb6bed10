"""DDL on Iceberg tables: each statement lands once, whatever crashes between.

Inside a table one metadata commit changes columns and properties, moves main to a snapshot with
the statement's offset, and takes the branch away: nothing can come between the change and its mark.

A table's name is the catalog's, so a renaming has no snapshot to carry a mark. Three steps: the
table is told the marks that it will have under its new name (which count only then), the namespace
those of the old name (which count only while no table has it), and the catalog renames. The last
one publishes both; before it, all is as it was and is done again. None of it begins before the new
name's own target has come to the statement, and says so in the namespace.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

from actors.contract.ports import (
    SinkUnavailable,
    StagedBatch,
    TargetRefused,
    TargetState,
    WaitsForName,
)
from changes.model import DropTable, TableName, TargetName
from offsets.fence import Marks, place_of, place_text
from sparkwriter.iceberg.catalog import LakeCatalog
from sparkwriter.iceberg.doubts import mark_after, set_mark
from sparkwriter.iceberg.equality import is_empty
from sparkwriter.iceberg.java import Java
from sparkwriter.iceberg.look import (
    DROPPED,
    KEPT,
    KEYS,
    RENAMING,
    Absent,
    Seen,
    look,
)
from sparkwriter.iceberg.marks import HWM
from sparkwriter.iceberg.publish import change_table, create_branch, drop_branch, publish_branch
from sparkwriter.iceberg.refusals import only_names
from sparkwriter.iceberg.source import check_source, source_after, source_text
from sparkwriter.sql.ddl_plan import DdlTable, apply_ddl


class Barriers:
    """Carries out the batches of one writer that are DDL. Used by the writer's thread.

    ``new_branch`` names a branch for a write that begins now.
    """

    def __init__(self, catalog: LakeCatalog, new_branch: Callable[[], str]) -> None:
        self._catalog = catalog
        self._new_branch = new_branch

    def write(self, batch: StagedBatch) -> TargetState:
        """Do what the batch's statements ask for. Raises as ``BatchWriter.write``."""
        here = look(self._catalog, batch.target)
        if not batch.changes_name:
            return self._inside(batch, here)
        if here.marks.show_renaming(batch):
            return replace(self._settle(batch, here), covered=True)
        here = self._made_anew(batch, here)
        if batch.moves_to is not None and isinstance(here, Seen):
            self._move(batch, here, batch.moves_to)
            here = look(self._catalog, batch.target)
        if batch.takes_from is None:
            return self._gone(batch, here)
        return self._take(batch, here, batch.takes_from)

    def move_aside(self, target: TargetName, seen: Seen) -> None:
        """Give a kept table another name, for the source has made its own anew."""
        assert seen.dropped is not None
        number = seen.dropped.rpartition(":")[2]
        aside = target._replace(table=f"{target.table}__dropped_{number}")
        self._catalog.bury(target, seen.marks.text())
        self._catalog.rename(target, aside)

    # --- inside a table

    def _inside(self, batch: StagedBatch, here: Seen | Absent) -> TargetState:
        if here.marks.cover(batch):
            return replace(here.state, covered=True)
        here.marks.check(batch)
        here = self._made_anew(batch, here)
        if isinstance(here, Absent):
            return self._gone(batch, here)
        check_source(batch, None if here.dropped else here.source)
        before, after = _planned(batch, here)
        if after.dropped is None:
            self._catalog.bury(batch.target, _marks(batch, here))
            self._catalog.drop(batch.target)
        else:
            dropped, of = _dropped_at(batch, after), source_after(batch, here.source)
            mark = None if after.emptied else mark_after(here, batch)
            change = _change(here, before, after, dropped, mark, of)
            self._publish(here, after, _marks(batch, here), change)
        return look(self._catalog, batch.target).state

    def _made_anew(self, batch: StagedBatch, here: Seen | Absent) -> Seen | Absent:
        """A statement about a table that was dropped before is about its successor."""
        if not isinstance(here, Seen) or here.dropped is None:
            return here
        stays = batch.moves_to is None and batch.takes_from is None
        if stays and all(isinstance(step, DropTable) for steps in batch.ddl for step in steps):
            return here
        here.marks.check(batch)
        self.move_aside(batch.target, here)
        return look(self._catalog, batch.target)

    def _publish(
        self, seen: Seen, after: DdlTable, stamp: str, change: Callable[[Java], None]
    ) -> None:
        table, branch = seen.table, self._new_branch()
        try:
            create_branch(table, branch, seen.main)
            if after.emptied:
                table.delete_all(branch, HWM, stamp)
            table.refresh()
            if table.head(branch) == seen.main:
                table.stamp(branch, HWM, stamp)
                table.refresh()
            head = table.head(branch)
            if head is None or table.parent(head) != seen.main:
                raise SinkUnavailable(f"branch {branch} does not show exactly this write")
            publish_branch(table, branch, seen.main, head, change)
        except BaseException:
            drop_branch(table, branch)
            raise

    def _settle(self, batch: StagedBatch, here: Seen | Absent) -> TargetState:
        """A table that was given its name contains the marks of that: now they get a snapshot.

        With a renaming amid a message those are short of it, also where no more of it follows.
        """
        marks = here.marks.after(batch).text()
        if isinstance(here, Seen) and (here.renamed or marks != here.marks.text()):
            same = _table(here)
            change = _change(here, same, same, here.dropped, here.differs, here.source)
            self._publish(here, same, marks, change)
        return look(self._catalog, batch.target).state

    # --- names

    def _move(self, batch: StagedBatch, seen: Seen, to: TargetName) -> None:
        seen.marks.check(batch)
        check_source(batch, seen.source)
        ((lane, _),) = batch.lanes.items()
        if isinstance(there := look(self._catalog, to), Seen):
            if there.marks.are_past(batch):
                raise TargetRefused(f"it is renamed to {to}, which is there already")
            raise WaitsForName(f"waits until {to}, which is to be its name, is free", to)
        if self._catalog.freed(to) != f"{lane}:{place_text(batch)}":
            raise WaitsForName(f"waits until what {to} was before is written", to)
        marks = json.loads(Marks.renamed_by(batch).text())
        # Whose it is, too: under its old name, should it keep that, it is still of the old table.
        told = {"to": str(to), "marks": marks, "source": batch.becomes}
        intent = json.dumps(told, ensure_ascii=False)
        before, after = _planned(batch, seen)
        differs = mark_after(seen, batch)
        change = _change(seen, before, after, _dropped_at(batch, after), differs, seen.source)

        def prepare(builder: Java) -> None:
            change(builder)
            builder.setProperties({RENAMING: intent})

        change_table(
            seen.table, seen.main, prepare, lambda: seen.table.property(RENAMING) == intent
        )
        self._catalog.bury(batch.target, _marks(batch, seen))
        self._catalog.rename(batch.target, to)

    def _gone(self, batch: StagedBatch, here: Seen | Absent) -> TargetState:
        """There was no table to rename or drop: who waits for it must be told all the same."""
        if isinstance(here, Seen):
            raise SinkUnavailable("the table came back meanwhile")
        if not here.marks.cover(batch):
            here.marks.check(batch)
            self._catalog.bury(batch.target, _marks(batch, here))
        return look(self._catalog, batch.target).state

    def _take(self, batch: StagedBatch, here: Seen | Absent, of: TargetName) -> TargetState:
        """Make room for the table ``of``, and wait until it has come."""
        ((lane, _),) = batch.lanes.items()
        if here.marks.of(lane) != place_of(batch) - 1:
            here.marks.check(batch)
        if isinstance(here, Seen):
            raise TargetRefused(f"{of} is renamed to it, and it is there already")
        # All that this name was before is written: the other may come, and not earlier. It would
        # else take the name from changes that still wait, and those would count as done.
        self._catalog.free(batch.target, f"{lane}:{place_text(batch)}")
        other = look(self._catalog, of)
        if not other.marks.are_past(batch):
            raise WaitsForName(f"waits until {of} has its name", of)
        here = look(self._catalog, batch.target)
        if isinstance(here, Seen):
            return self._settle(batch, here)
        self._catalog.bury(batch.target, here.marks.after(batch).text())
        return look(self._catalog, batch.target).state


def _table(seen: Seen) -> DdlTable:
    kept = json.loads(seen.table.property(KEPT) or "[]")
    empty = is_empty(seen)
    return DdlTable(seen.table.fields(), seen.stored.keys, frozenset(kept), empty=empty)


def _planned(batch: StagedBatch, seen: Seen) -> tuple[DdlTable, DdlTable]:
    """The table before and after the batch's statements."""
    before = _table(seen)
    aside = f"__dropped_{place_text(batch)}"
    return before, apply_ddl(before, batch.ddl, seen.stored.mode, aside)


def _dropped_at(batch: StagedBatch, after: DdlTable) -> str | None:
    ((lane, _),) = batch.lanes.items()
    return f"{lane}:{place_text(batch)}" if after.dropped else None


def _marks(batch: StagedBatch, here: Seen | Absent) -> str:
    """The marks after the batch. A name that is taken again is only done when that has come."""
    return here.marks.after(batch, waits=batch.takes_from is not None).text()


def _change(
    seen: Seen,
    before: DdlTable,
    after: DdlTable,
    dropped: str | None,
    mark: str | None,
    of: TableName | None,
) -> Callable[[Java], None]:
    """What a metadata commit changes beside the refs. ``mark``: of its stored rows, ``of``: the
    source's table, both afterwards."""
    schema_id = int(seen.table.metadata.currentSchemaId())

    def change(builder: Java) -> None:
        if int(seen.table.metadata.currentSchemaId()) != schema_id:
            raise SinkUnavailable("others changed the table's columns meanwhile")
        if after.fields != before.fields:
            with only_names():
                seen.table.set_fields(builder, after.fields)
        properties = dict(source_text(of))
        if after.keys != before.keys:
            properties[KEYS] = json.dumps(list(after.keys), ensure_ascii=False)
        if after.kept != before.kept:
            properties[KEPT] = json.dumps(sorted(after.kept), ensure_ascii=False)
        if dropped is not None:
            properties[DROPPED] = dropped
        if properties:
            builder.setProperties(properties)
        set_mark(builder, seen.differs, mark)
        if seen.renamed:
            builder.removeProperties({RENAMING})

    return change
