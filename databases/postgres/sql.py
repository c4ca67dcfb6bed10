"""The SQL of PostgreSQL: canonical texts of its types, literals, names. Pure.

The texts rely on a session in UTC, with ISO dates, and with ``extra_float_digits`` above 0.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from changes.model.digits import is_digits
from changes.model.types import MAX_PRECISION
from changes.sql.forms import LONG_BYTES, Form
from changes.sql.quoted import quoted
from changes.sql.spark.checksums import TextColumn
from databases.base.errors import DatabaseRefused
from databases.base.port import SourceColumn
from databases.base.selects import Words

_SIZES = re.compile(r"\(([^()]*)\)")
_LONG_BITS = 64

_PRINTED = (
    "text", "character varying", "character", "citext", "name", "uuid", "json", "jsonb", "xml",
    "inet", "cidr", "macaddr", "macaddr8", "ltree", "int4range", "int8range", "numrange",
    "daterange", "tsrange",
)  # fmt: skip
_EXTENSIONS = ("citext", "ltree")
"""Of these, types with operators of their own."""
_FORMS: Mapping[str, Form] = {
    **dict.fromkeys(("smallint", "integer", "bigint", "oid", "interval"), Form.WHOLE),
    **dict.fromkeys(_PRINTED, Form.TEXT),
    "boolean": Form.BOOLEAN,
    "numeric": Form.DECIMAL,
    "money": Form.VARIABLE,  # its digits are those of the server's locale
    "real": Form.SINGLE,
    "double precision": Form.DOUBLE,
    "bytea": Form.HEX,
    "point": Form.HEX,
    "date": Form.DATE,
    "timestamp without time zone": Form.LOCAL,
    "timestamp with time zone": Form.INSTANT,
    "time without time zone": Form.TIME,
}

ARRAYS = frozenset(
    ("smallint", "integer", "bigint", "boolean", "text", "character varying", "uuid", "date",
     "timestamp without time zone", "numeric")
)  # fmt: skip
"""Types of items that JSON has in one way alone."""


def base_of(type_: str) -> tuple[str, str]:
    """A type without its sizes and its schema, and the sizes: ``numeric(4,2)[]`` is ``numeric[]``
    and ``4,2``."""
    sizes = _SIZES.search(type_)
    base = _SIZES.sub("", type_).strip()
    if '"' not in base and "." in base:
        base = base.rpartition(".")[2]
    return re.sub(r"\s+", " ", base, flags=re.ASCII), sizes[1] if sizes else ""


def form_of(type_: str, *, is_enum: bool = False) -> Form | None:
    """The canonical text of a type; None for one that has none."""
    if is_enum:
        return Form.TEXT
    base, sizes = base_of(type_)
    if base in ("bit", "bit varying"):
        bits = int(sizes) if is_digits(sizes) else 1 if base == "bit" else 0
        if base == "bit" and bits == 1:
            return Form.BOOLEAN
        return Form.WHOLE if 1 <= bits <= _LONG_BITS else None
    if base == "numeric" and not sizes:
        return Form.VARIABLE
    if base.endswith("[]"):
        return Form.ARRAY if base.removesuffix("[]") in ARRAYS else None
    return _FORMS.get(base)


class PostgreSqlWords(Words):
    """Those of PostgreSQL."""

    sign_of_names = '"'
    compares_rows = True

    def text(self, column: SourceColumn) -> str:
        if column.form is None:
            raise DatabaseRefused(f"column {column.name}: {column.refused}")
        name, (base, _) = self.quote(column.sql_name), base_of(column.type)
        made = _OF_TYPE.get(base) or _TEXT_OF[column.form]
        return f"CASE WHEN {name} IS NOT NULL THEN {made(name)} END"

    def sent(self, column: SourceColumn) -> str:
        if column.form is not Form.HEX:
            return self.text(column)
        if base_of(column.type)[0] == "bytea":
            return self.quote(column.sql_name)
        return f"decode({self.text(column)}, 'hex')"

    def lost(self, column: SourceColumn) -> str | None:
        name = self.quote(column.sql_name)
        if column.form in (Form.DATE, Form.LOCAL, Form.INSTANT):
            return f"NOT isfinite({name})"
        if column.form in (Form.DECIMAL, Form.VARIABLE) and base_of(column.type)[0] == "numeric":
            return f"{name}::text IN ('NaN', 'Infinity', '-Infinity')"
        return None

    def sign(self, column: SourceColumn, sign: str) -> str:
        """The session's search path has no extension: without its schema
        an operator of citext's would be that of text, which no index of the column has."""
        schema, _, type_ = column.type.rpartition(".")
        return f"OPERATOR({schema}.{sign})" if schema and type_ in _EXTENSIONS else sign

    def row_hash(self, columns: Sequence[TextColumn]) -> str:
        joined = " || ".join(map(_field, columns))
        return f"encode(sha256(convert_to({joined}, 'UTF8')), 'hex')"

    def number(self, digits: str, other: int) -> str:
        return f"COALESCE(('x' || {digits})::bit(64)::bigint, {other})"

    def literal(self, column: SourceColumn, text: str) -> str:
        """The type is written out: an enumeration's order is its own."""
        base, sizes = base_of(column.type)
        if column.form is Form.HEX and base == "bytea":
            text = f"\\x{text}"
        if base in ("bit", "bit varying"):
            return _bit_string(column, text, int(sizes) if is_digits(sizes) else 1)
        if base in ("interval", "point", "money"):
            raise DatabaseRefused(f"column {column.name}: a key of type {column.type}")
        if "\0" in text:
            raise DatabaseRefused(f"column {column.name}: a text with a NUL")
        return f"{quoted(text)}::{_castable(column.type)}"


def _field(column: TextColumn) -> str:
    text, free = column
    whole = f"char_length({text})::text || ':' || ({text})" if free else f"({text}) || ','"
    return f"coalesce({whole}, 'n,')"


def _castable(type_: str) -> str:
    """``character`` without a length would be one sign."""
    return "bpchar" if base_of(type_)[0] == "character" else type_


def _bit_string(column: SourceColumn, text: str, length: int) -> str:
    if not is_digits(text) or base_of(column.type)[0] != "bit":
        raise DatabaseRefused(f"column {column.name}: a key of type {column.type}")
    return f"B'{int(text):0{length}b}'"


def printed(name: str) -> str:
    """What the type's own output is: ``::text`` differs for inet and character."""
    return f"concat({name})"


def _whole_bits(name: str) -> str:
    """A bit string as an unsigned number."""
    bits = f"lpad({name}::text, 64, '0')"
    high, low = f"substr({bits}, 1, 32)::bit(32)", f"substr({bits}, 33)::bit(32)"
    return f"({high}::bigint::numeric * 4294967296 + {low}::bigint)::text"


def _bits(name: str) -> str:
    return f"('x' || encode(float8send({name}::double precision), 'hex'))::bit(64)::bigint::text"


def _in_calendar(name: str, first: str, made: str) -> str:
    """Dates that no calendar of the lake has stay as PostgreSQL prints them."""
    inside = (
        f"isfinite({name}) AND {name} >= '0001-01-01'::{first} AND {name} < '10000-01-01'::{first}"
    )
    return f"CASE WHEN {inside} THEN {made} ELSE {name}::text END"


_MOMENT = "YYYY-MM-DD HH24:MI:SS.US"


def _interval(name: str) -> str:
    """Microseconds; a month is 365.25 / 12 days, as Debezium counts."""
    months = f"(extract(year FROM {name}) * 12 + extract(month FROM {name}))::bigint"
    minutes = f"(extract(hour FROM {name}) * 60 + extract(minute FROM {name}))::bigint"
    return (
        f"({months} * 2629800000000 + extract(day FROM {name})::bigint * 86400000000"
        f" + {minutes} * 60000000 + extract(microseconds FROM {name})::bigint)::text"
    )


def _point(name: str) -> str:
    """SRID 0, then WKB, little-endian."""
    parts = []
    for place in (0, 1):
        sent = f"encode(float8send({name}[{place}]), 'hex')"
        parts += [f"substr({sent}, {start}, 2)" for start in range(15, 0, -2)]
    return f"'00000000' || '0101000000' || {' || '.join(parts)}"


def _array(name: str) -> str:
    """JSON of several dimensions is none that the stream has: marked, and refused where read."""
    return (
        f"CASE WHEN array_ndims({name}) > 1 THEN 'an array of several dimensions'"
        f" ELSE array_to_json({name})::text END"
    )


def _dates(name: str, item: str = "item::text") -> str:
    """An array of dates. Infinite ones are marked, too."""
    items = f"array_agg({item} ORDER BY place)"
    unnested = f"unnest({name}) WITH ORDINALITY u(item, place)"
    listed = f"SELECT array_to_json({items})::text FROM {unnested}"
    return (
        f"CASE WHEN {name}::text LIKE '%infinity%' THEN 'an array with an infinite date'"
        f" WHEN array_ndims({name}) > 1 THEN 'an array of several dimensions'"
        f" ELSE coalesce(({listed}), '[]') END"
    )


def _moments(name: str) -> str:
    """An array of timestamps: JSON would write these with a T, and fewer digits of a second."""
    return _dates(name, f"regexp_replace(to_char(item, '{_MOMENT}'), '[.]000000$', '')")


_TEXT_OF: Mapping[Form, Callable[[str], str]] = {
    Form.WHOLE: lambda name: f"{name}::text",
    Form.BOOLEAN: lambda name: f"CASE WHEN {name} THEN '1' ELSE '0' END",
    Form.DECIMAL: lambda name: f"{name}::text",
    # Debezium has it without the zeros at its end.
    Form.VARIABLE: lambda name: f"trim_scale({name})::text",
    Form.SINGLE: lambda name: f"{name}::double precision::text",
    Form.DOUBLE: lambda name: f"{name}::text",
    Form.TEXT: printed,
    Form.HEX: lambda name: (
        f"CASE WHEN length({name}) > {LONG_BYTES} THEN 'sha256:' || encode(sha256({name}), 'hex')"
        f" ELSE encode({name}, 'hex') END"
    ),
    Form.DATE: lambda name: _in_calendar(name, "date", f"to_char({name}, 'YYYY-MM-DD')"),
    Form.LOCAL: lambda name: _in_calendar(name, "timestamp", f"to_char({name}, '{_MOMENT}')"),
    Form.INSTANT: lambda name: _in_calendar(name, "timestamptz", f"to_char({name}, '{_MOMENT}')"),
    Form.TIME: lambda name: (
        f"regexp_replace(to_char({name}::interval, 'HH24:MI:SS.US'), '[.]000000$', '')"
    ),
    Form.JSON: printed,
    Form.COMPACT: printed,
    Form.ARRAY: _array,
    Form.BITS: _bits,
}

_OF_TYPE: Mapping[str, Callable[[str], str]] = {
    "bit": lambda name: _whole_bits(name),
    "bit varying": lambda name: _whole_bits(name),
    "money": lambda name: f"trim_scale({name}::numeric)::text",
    "interval": _interval,
    "point": _point,
    "date[]": _dates,
    "timestamp without time zone[]": _moments,
}
"""Types whose text is not their form's own."""


# The lake types that Debezium's records of PostgreSQL come to. Pure.

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
_STREAMED_LONG_BITS = 63


def lake_type(type_: str, form: Form) -> str:
    """The lake's type, by Iceberg's name, of a column of a connector with its defaults."""
    base, sizes = base_of(type_)
    if form is Form.WHOLE:
        if base in ("bit", "bit varying"):
            return "long" if int(sizes) <= _STREAMED_LONG_BITS else "decimal(20, 0)"
        return "int" if base in ("smallint", "integer") else "long"
    if base == "money":
        return "decimal(38, 2)"
    if form is Form.DECIMAL:
        return _decimal(sizes)
    return _TYPES[form]


def _decimal(sizes: str) -> str:
    """A scale may be negative, or exceed the precision."""
    numbers = [int(number) for number in sizes.split(",")]
    precision, scale = numbers if len(numbers) == 2 else (numbers[0], 0)
    digits = max(precision - min(scale, 0), scale, 1)
    return f"decimal({digits}, {max(scale, 0)})" if digits <= MAX_PRECISION else "string"
