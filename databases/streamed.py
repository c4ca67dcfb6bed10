"""What a stream makes of a table's columns: lake types and forms, by format. Pure.

A load must store what the stream would: the same value in the same type. ``docs/types.md`` says
which; a column whose stream's value can't be had from the database is refused by name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from changes.formats import FORMATS
from changes.formats.debezium.untyped import configured_wire_type
from changes.formats.engine.configured_types import configured_type
from changes.formats.engine.format import DeclaredTypes
from changes.model.digits import is_digits
from changes.model.model import ColumnTypes
from changes.sql.forms import Form
from changes.sql.mysql.types import from_mysql
from changes.sql.spark.canonical import is_readable
from changes.sql.spark.schema import iceberg_type, widens
from databases.base.port import SourceColumn, SourceTable
from databases.mysql import sql as mysql_sql
from databases.postgres import sql as postgresql_types

DEBEZIUM = ("debezium", "debezium-json")

_EPOCH = {
    Form.DATE: "1970-01-01",
    Form.LOCAL: "1970-01-01 00:00:00.000000",
    Form.INSTANT: "1970-01-01 00:00:00.000000",
}
_DEBEZIUM_MYSQL: Mapping[str, str] = {
    **dict.fromkeys(("tinyint", "smallint", "mediumint", "year"), "int"),
    "int": "int",
    "bigint": "long",
    "float": "float",
    "double": "double",
}
_ALIYUN: Mapping[str, str] = {
    **dict.fromkeys(("tinyint", "smallint", "mediumint", "year"), "int"),
    **dict.fromkeys(("int", "bigint", "bit"), "long"),
    "decimal": "string",
}


@dataclass(frozen=True, slots=True)
class StreamedColumn:
    """``column`` has the form that gives the stream's value in the lake's ``type`` (Iceberg's
    name)."""

    column: SourceColumn
    type: str


@dataclass(frozen=True, slots=True)
class Streamed:
    """The columns that the stream has, in order, and why others can't be had: one line each."""

    columns: tuple[StreamedColumn, ...]
    refused: tuple[str, ...]


def as_streamed(
    table: SourceTable,
    kind: str,
    format_: str,
    types: ColumnTypes = (),
    stored: Mapping[str, str] | None = None,
    *,
    collected: bool = False,
) -> Streamed:
    """A table as a pipeline's stream would store it. ``collected``: its reader is a collector's
    Debezium, which has unsigned numbers of 64 bits exactly.

    ``kind`` is the database's (``sections.Address.kind``), ``format_`` a known one, not ``auto``.
    ``types`` are the route's. ``stored``: types of the present target's columns, by name.
    """
    declared = {name.lower(): words for name, words in types}
    there = {name.lower(): type_ for name, type_ in (stored or {}).items()}
    columns, refused = [], []
    for column in table.columns:
        if kind == "postgresql" and column.generated:
            continue  # PostgreSQL does not publish it
        try:
            own = _own(column, kind, format_, collected=collected)
            lower = column.name.lower()
            type_ = _wanted(own, format_, declared.get(lower), there.get(lower))
        except ValueError as error:
            refused.append(f"{table.name}, column {column.name}: {error}")
        else:
            columns.append(StreamedColumn(_as_text(own.column, format_, type_), type_))
    return Streamed(tuple(columns), tuple(refused))


def _as_text(column: SourceColumn, format_: str, type_: str) -> SourceColumn:
    """A date in a column of text, of a format without types: what MySQL prints, zero dates too."""
    zeros = {Form.DATE: "0000-00-00", Form.LOCAL: "0000-00-00 00:00:00", Form.TIME: None}
    if not _is_untyped(format_) or type_ != "string" or column.form not in zeros:
        return column
    return replace(column, form=Form.TEXT, zero=zeros[column.form])


def _own(column: SourceColumn, kind: str, format_: str, *, collected: bool) -> StreamedColumn:
    """The column as its format has it without declared types. Raises ValueError."""
    if column.form is None:
        raise ValueError(column.refused)
    if kind == "postgresql":
        if format_ not in DEBEZIUM:
            raise ValueError(f"format {format_} is not read from PostgreSQL")
        return StreamedColumn(column, postgresql_types.lake_type(column.type, column.form))
    return _own_of_mysql(column, format_, collected=collected)


def _own_of_mysql(column: SourceColumn, format_: str, *, collected: bool) -> StreamedColumn:
    base, form = mysql_sql.base_of(column.type)[0], column.form
    by_words = iceberg_type(from_mysql(column.type).arrow)
    if format_ in DEBEZIUM:
        own = _debezium_mysql(column, base, by_words)
        exact = collected and base == "bigint"
        return StreamedColumn(own.column, by_words) if exact else own
    if base in ("uuid", "inet4", "inet6"):
        raise ValueError(f"format {format_} has no text of a {base}")
    if base == "binary":
        # The binary log leaves the zero bytes at its end away; Debezium puts them back.
        column = replace(column, form=Form.STRIPPED)
    if FORMATS[format_].column_types is DeclaredTypes.SOURCE:
        return StreamedColumn(column, by_words)
    if format_ == "aliyun-dts-avro":
        if form in (Form.HEX, Form.JSON):
            raise ValueError(f"a {column.type} comes as text that the database does not show")
        whole = replace(column, form=Form.WHOLE) if base == "bit" else column
        return StreamedColumn(whole, _ALIYUN.get(base, by_words))
    if _is_untyped(format_):
        return StreamedColumn(_untyped(column, base), "string")
    if format_ == "upsert":
        raise ValueError("its writer's schemas say the types of upsert rows, not the database")
    raise ValueError(f"format {format_} is not known here")


def _is_untyped(format_: str) -> bool:
    return FORMATS[format_].column_types is DeclaredTypes.NONE


def _untyped(column: SourceColumn, base: str) -> SourceColumn:
    """Maxwell has null for an enumeration's invalid value, and a quote in a label twice."""
    if base == "enum":
        if any("'" in label or not label for label in from_mysql(column.type).labels):
            raise ValueError("Maxwell writes a label with a quote, or without a sign, otherwise")
        return replace(column, zero="")
    return column


def _debezium_mysql(column: SourceColumn, base: str, by_words: str) -> StreamedColumn:
    """The types of a connector with its defaults."""
    if column.form is Form.JSON:
        column = replace(column, form=Form.COMPACT)
    if base == "year":
        column = replace(column, zero="1900")
    if column.form in _EPOCH and (not column.nullable or column.form is Form.INSTANT):
        # A NOT NULL column has no null for a zero date, and a TIMESTAMP of zero is the epoch's.
        column = replace(column, zero=_EPOCH[column.form])
    if base == "enum" and any("," in label for label in from_mysql(column.type).labels):
        raise ValueError("Debezium writes a label with a comma otherwise")
    known = _DEBEZIUM_MYSQL.get(base)
    if base == "float" and "," in mysql_sql.base_of(column.type)[1]:
        known = "double"
    if base == "int" and "unsigned" in column.type.lower():
        known = "long"
    return StreamedColumn(column, known or by_words)


def _wanted(own: StreamedColumn, format_: str, words: str | None, stored: str | None) -> str:
    """The lake's type: the target's, else the declared one, else the format's own. Raises
    ValueError where values of that type are not those that the stream writes."""
    column, form = own.column, own.column.form
    assert form is not None
    declared = None if words is None else _declared(format_, words)
    type_ = stored or declared or own.type
    if type_ == own.type and (type_ != "string" or not _is_untyped(format_)):
        return type_
    if not is_readable(form, type_):
        hint = "; declare its type" if declared is None and _is_untyped(format_) else ""
        raise ValueError(f"a {column.type} is not had exactly as {type_}{hint}")
    if type_ == "string":
        for problem in _unlike_texts(own, format_, declared):
            raise ValueError(problem)
    elif stored is not None and declared is None and not _may_become(own.type, stored, format_):
        raise ValueError(f"the target has it as {stored}, the stream as {own.type}")
    return type_


def _may_become(own: str, stored: str, format_: str) -> bool:
    """Whether a column of the stream's type may have become the stored one."""
    if _is_untyped(format_):
        return True
    wider = own == stored or widens(own, stored) or widens(stored, own)
    numbers = own.startswith(("int", "long", "decimal", "boolean"))
    return wider or (numbers and stored.startswith(("int", "long", "decimal", "boolean")))


def _declared(format_: str, words: str) -> str:
    """The lake's type of a configured one. Raises ValueError."""
    parse = configured_wire_type if format_ in DEBEZIUM else configured_type
    return iceberg_type(parse(words).arrow)


def _unlike_texts(own: StreamedColumn, format_: str, declared: str | None) -> Iterator[str]:
    """Why the stream's text of a value may be another than the canonical one."""
    column, form, type_ = own.column, own.column.form, own.column.type
    if form in (Form.WHOLE, Form.TEXT) and not type_.lower().startswith(("set", "interval")):
        return
    if own.type == "string" and not _is_untyped(format_):
        return
    scale = mysql_sql.base_of(type_)[1].rpartition(",")[2]
    if form is Form.DECIMAL:
        # Java prints a zero with more digits than six as 0E-7.
        if format_ in DEBEZIUM or not is_digits(scale.strip()) or int(scale) <= 6:
            return
    elif form in (Form.DATE, Form.LOCAL, Form.TIME) and _prints_alike(own, format_, declared):
        return
    yield f"a {column.type} as text is not had as the stream prints it; declare its type"


def _prints_alike(own: StreamedColumn, format_: str, declared: str | None) -> bool:
    if format_ in DEBEZIUM:
        return declared == "string"  # else, without a schema, it is a number
    if not FORMATS[format_].prints_as_database:
        return False
    digits = mysql_sql.base_of(own.column.type)[1]
    return own.column.form is Form.DATE or digits in ("", "0")
