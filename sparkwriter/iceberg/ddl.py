"""What statements make of an Iceberg table, each in one step that carries its mark.

Inside a table one metadata commit changes columns and properties, moves main to a snapshot with
the statement's offset, and takes the branch away: nothing can come between the change and its mark.

A table's name is the catalog's, so a renaming has no snapshot to carry a mark. Three steps: the
table is told the marks that it will have under its new name (which count only then), the namespace
those of the old name (which count only while no table has it), and the catalog renames. The last
one publishes both; before it, all is as it was and is done again.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from actors.contract.ports import SinkUnavailable
from changes.model import TableName, TargetName
from offsets.fence import Marks
from sparkwriter.iceberg.catalog import LakeCatalog
from sparkwriter.iceberg.doubts import set_mark
from sparkwriter.iceberg.equality import is_empty
from sparkwriter.iceberg.java_fields import set_fields
from sparkwriter.iceberg.look import DROPPED, KEPT, KEYS, RENAMING, Seen
from sparkwriter.iceberg.marks import HWM
from sparkwriter.iceberg.publish import change_table, create_branch, drop_branch, publish_branch
from sparkwriter.iceberg.refusals import only_names
from sparkwriter.iceberg.source import source_text
from sparkwriter.kit.store import TableChange
from sparkwriter.session.java_failures import Java
from sparkwriter.sql.ddl_plan import DdlTable


def columns_of(seen: Seen) -> DdlTable:
    """The table as statements find it."""
    kept = json.loads(seen.table.property(KEPT) or "[]")
    empty = is_empty(seen)
    return DdlTable(seen.table.fields(), seen.stored.keys, frozenset(kept), empty=empty)


def publish_change(seen: Seen, change: TableChange, branch: str) -> None:
    """Change the table and its marks in one commit. ``branch``: a name for it. Raises as
    ``publish_branch``."""
    table, stamp = seen.table, change.facts.marks.text()
    try:
        create_branch(table, branch, seen.main)
        if change.after.emptied:
            table.delete_all(branch, HWM, stamp)
        table.refresh()
        if table.head(branch) == seen.main:
            table.stamp(branch, HWM, stamp)
            table.refresh()
        head = table.head(branch)
        if head is None or table.parent(head) != seen.main:
            raise SinkUnavailable(f"branch {branch} does not show exactly this write")
        publish_branch(table, branch, seen.main, head, _also(seen, change, change.facts.source))
    except BaseException:
        drop_branch(table, branch)
        raise


def move_table(
    catalog: LakeCatalog, seen: Seen, to: TargetName, change: TableChange, left: Marks
) -> None:
    """Change the table and give it another name: see ``TableStore.move``."""
    facts = change.facts
    marks = json.loads(facts.marks.text())
    intent = json.dumps({"to": str(to), "marks": marks, "source": facts.source}, ensure_ascii=False)
    also = _also(seen, change, seen.source)

    def prepare(builder: Java) -> None:
        also(builder)
        builder.setProperties({RENAMING: intent})

    change_table(seen.table, seen.main, prepare, lambda: seen.table.property(RENAMING) == intent)
    catalog.bury(seen.target, left.text())
    catalog.rename(seen.target, to)


def _also(seen: Seen, change: TableChange, of: TableName | None) -> Callable[[Java], None]:
    """What a metadata commit changes beside the refs. ``of``: the source's table, under the name
    that the table has now."""
    schema_id = int(seen.table.metadata.currentSchemaId())
    before, after = change.before, change.after

    def commit(builder: Java) -> None:
        if int(seen.table.metadata.currentSchemaId()) != schema_id:
            raise SinkUnavailable("others changed the table's columns meanwhile")
        if after.fields != before.fields:
            with only_names():
                set_fields(seen.table, builder, after.fields)
        properties = dict(source_text(of))
        if after.keys != before.keys:
            properties[KEYS] = json.dumps(list(after.keys), ensure_ascii=False)
        if after.kept != before.kept:
            properties[KEPT] = json.dumps(sorted(after.kept), ensure_ascii=False)
        if change.dropped is not None:
            properties[DROPPED] = change.dropped
        if properties:
            builder.setProperties(properties)
        set_mark(builder, seen.differs, change.facts.differs)
        if seen.renamed:
            builder.removeProperties({RENAMING})

    return commit
