"""What statements make of an Iceberg table, each in one step that carries its mark.

Inside a table one metadata commit changes columns and properties, moves main to a snapshot with
the statement's offset, and takes the branch away: nothing can come between the change and its mark.

A table's name is the catalog's, so a renaming has no snapshot to carry a mark. Three steps: the
table gets the marks that it will have under its new name (which count only then), the namespace
those of the old name (which count only while no table has it), and the catalog renames. The last
one publishes both; before it, all is as it was and is done again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation

from changes.model.errors import SinkUnavailable, TargetRefused
from changes.model.model import TableName, TargetName
from changes.sql.spark.ddl_plan import DdlTable, LakeField
from changes.sql.spark.schema import LakeColumn
from offsets.fence import Marks
from sparkwriter.iceberg.catalog import LakeCatalog
from sparkwriter.iceberg.equality import is_empty
from sparkwriter.iceberg.java import LakeTable
from sparkwriter.iceberg.local_tables import HWM
from sparkwriter.iceberg.look import (
    DIFFERS,
    DROPPED,
    KEPT,
    KEY_PARTITIONING,
    KEYS,
    LABELS,
    RENAMING,
    SHAPE,
    Seen,
)
from sparkwriter.iceberg.ownership import source_text
from sparkwriter.iceberg.publish import change_table, create_branch, drop_branch, publish_branch
from sparkwriter.iceberg.refusals import only_names
from sparkwriter.kit.store import Facts, TableChange
from sparkwriter.session.java_api import Java

# What a metadata commit says of a table beside its snapshot: the mark of rows that may differ, the
# source's table, the shape of the rows.


def set_mark(builder: Java, before: str | None, after: str | None) -> None:
    """Have a metadata builder change the mark."""
    if after is None and before is not None:
        builder.removeProperties({DIFFERS})
    elif after is not None and after != before:
        builder.setProperties({DIFFERS: after})


def shape_text(shape: str) -> Mapping[str, str]:
    """The property that says which shape the rows have; none where it is the source's own."""
    return {SHAPE: shape} if shape else {}


def also_of(
    seen: Seen, after: Facts, properties: Mapping[str, str] | None = None
) -> Callable[[Java], None] | None:
    """What a write of rows changes in its commit beside the snapshot, None where nothing.

    The marks that came with the table's name are in its snapshots from then on. ``properties``:
    those of the table that its route asks for.
    """
    text = {**source_text(after.source), **shape_text(after.shape), **(properties or {})}
    text |= {LABELS: after.labels} if after.labels else {}
    text |= {KEY_PARTITIONING: after.key_partitioning} if after.key_partitioning else {}
    told = all(seen.table.property(name) == value for name, value in text.items())
    shaped = seen.shape and not after.shape
    if not seen.renamed and after.differs == seen.differs and told and not shaped:
        return None

    def change(builder: Java) -> None:
        if seen.renamed:
            builder.removeProperties({RENAMING})
        if shaped:
            builder.removeProperties({SHAPE})
        if not told:
            builder.setProperties(text)
        set_mark(builder, seen.differs, after.differs)

    return change


# Columns and their defaults, given to Iceberg's Java API.


def default_json(jvm: Java, value: object, column: LakeColumn) -> object:
    """A Python value as a default in the metadata's JSON. Raises TargetRefused."""
    iceberg = jvm.org.apache.iceberg
    type_ = iceberg.types.Types.fromPrimitiveString(column.type)
    field = iceberg.types.Types.NestedField.optional(column.name).withId(1).ofType(type_)
    made = field.withWriteDefault(_literal(jvm, value, column, type_)).build()
    text = iceberg.SchemaParser.toJson(iceberg.Schema([made]))
    return json.loads(text)["fields"][0]["write-default"]


def set_fields(table: LakeTable, builder: Java, fields: Iterable[LakeField]) -> None:
    """Have a metadata builder make these the columns; new ones get the next ids.

    Raises TargetRefused where a default does not fit its type.
    """
    iceberg = table.jvm.org.apache.iceberg
    types, nested = iceberg.types.Types, iceberg.types.Types.NestedField
    old, last = table.metadata.schema(), int(table.metadata.lastColumnId())
    made = []
    for field in fields:
        type_ = types.fromPrimitiveString(field.type)
        if field.id is not None:
            copy = getattr(nested, "from")(old.findField(field.id))
            made.append(copy.withName(field.name).ofType(type_).build())
            continue
        last += 1
        new = nested.optional(field.name).withId(last).ofType(type_)
        if field.default is not None:
            value = _literal(table.jvm, field.default, LakeColumn(field.name, field.type), type_)
            new = new.withInitialDefault(value).withWriteDefault(value)
        made.append(new.build())
    builder.setCurrentSchema(iceberg.Schema(made), last)


def _literal(jvm: Java, value: object, column: LakeColumn, type_: Java) -> Java:
    """A Python value as Iceberg's literal. Raises TargetRefused where it does not fit."""
    match value:
        case Decimal() | int() if column.type.startswith("decimal"):
            plain: object = _decimal_text(value, int(type_.precision()), int(type_.scale()))
        case datetime() | date():
            plain = value.isoformat()
        case _:
            plain = value
    literal = None
    if plain is not None:
        literal = jvm.org.apache.iceberg.expressions.Literal.of(plain).to(type_)
    if literal is None or literal.getClass().getSimpleName() in {"AboveMax", "BelowMin"}:
        raise TargetRefused(
            f"column {column.name}: the default {value!r} does not fit {column.type}"
        )
    return literal


def _decimal_text(value: Decimal | int, precision: int, scale: int) -> str | None:
    """A number with ``scale`` digits behind the point, rounded as databases do, away from zero.

    None where its digits are more than ``precision``, which may be more than Python's usual 28.
    """
    exact = Context(prec=precision, rounding=ROUND_HALF_UP)
    try:
        return f"{Decimal(value).quantize(Decimal((0, (1,), -scale)), context=exact):f}"
    except InvalidOperation:
        return None


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
