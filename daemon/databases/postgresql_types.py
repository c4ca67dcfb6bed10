"""The lake types that Debezium's records of PostgreSQL come to. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from changes.types import MAX_PRECISION
from daemon.databases.postgresql_sql import base_of
from sparkwriter.sql.forms import Form

_TYPES: Mapping[Form, str] = {
    Form.BOOLEAN: "boolean",
    Form.VARIABLE: "string",
    Form.SINGLE: "float",
    Form.DOUBLE: "double",
    Form.TEXT: "string",
    Form.HEX: "binary",
    Form.DATE: "date",
    Form.LOCAL: "timestamp",
    Form.INSTANT: "timestamptz",
    Form.TIME: "string",
    Form.JSON: "string",
    Form.ARRAY: "string",
}
_LONG_BITS = 63


def lake_type(type_: str, form: Form) -> str:
    """The lake's type, by Iceberg's name, of a column of a connector with its defaults."""
    base, sizes = base_of(type_)
    if form is Form.WHOLE:
        if base in ("bit", "bit varying"):
            return "long" if int(sizes) <= _LONG_BITS else "decimal(20, 0)"
        return "int" if base in ("smallint", "integer") else "long"
    if form is Form.DECIMAL:
        return "decimal(38, 2)" if base == "money" else _decimal(sizes)
    return _TYPES[form]


def _decimal(sizes: str) -> str:
    """A scale may be negative, or exceed the precision."""
    numbers = [int(number) for number in sizes.split(",")]
    precision, scale = numbers if len(numbers) == 2 else (numbers[0], 0)
    digits = max(precision - min(scale, 0), scale, 1)
    return f"decimal({digits}, {max(scale, 0)})" if digits <= MAX_PRECISION else "string"
