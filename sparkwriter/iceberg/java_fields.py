"""Columns and their defaults, given to Iceberg's Java API."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import date, datetime
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation

from actors.contract.ports import TargetRefused
from sparkwriter.iceberg.java import LakeTable
from sparkwriter.session.java_failures import Java
from sparkwriter.sql.ddl_plan import LakeField
from sparkwriter.sql.schema import LakeColumn


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
