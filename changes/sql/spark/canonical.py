"""Spark SQL that reads canonical texts into the lake's types, and prints stored values as them.

Pure. Reading is what a load does, printing what a verification does: a value that was read prints
as the text it was read from. A text that does not fit its type ends the query with a line that
names it: nothing becomes null that was something, unless ``zero_dates`` asks for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from changes.model.model import ZeroDates
from changes.sql.forms import LONG_BYTES, Form
from changes.sql.spark.schema import spark_type
from changes.sql.spark.words import string_literal

_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)", re.ASCII)

_WHOLE = frozenset(("int", "long"))
_READABLE: Mapping[Form, frozenset[str]] = {
    Form.WHOLE: frozenset(("int", "long", "decimal", "string", "boolean")),
    Form.BOOLEAN: frozenset(("boolean", "int", "long", "decimal")),
    Form.DECIMAL: frozenset(("decimal", "string")),
    Form.VARIABLE: frozenset(("string", "decimal")),
    Form.SINGLE: frozenset(("float", "double")),
    Form.DOUBLE: frozenset(("double",)),
    Form.BITS: frozenset(("float", "double")),
    Form.TEXT: frozenset(("string",)),
    Form.HEX: frozenset(("binary",)),
    Form.STRIPPED: frozenset(("binary",)),
    Form.DATE: frozenset(("date", "string")),
    Form.LOCAL: frozenset(("timestamp", "string")),
    Form.INSTANT: frozenset(("timestamptz",)),
    Form.TIME: frozenset(("string",)),
    Form.JSON: frozenset(("string",)),
    Form.COMPACT: frozenset(("string",)),
    Form.ARRAY: frozenset(("string",)),
}
"""By form the lake types, without their digits, in which the same value has one reading."""


def is_readable(form: Form, type_: str) -> bool:
    """Whether a lake type holds the values of a form, and both ways have one text for each."""
    return type_.partition("(")[0] in _READABLE[form]


def read(form: Form, type_: str, text: str, zero_dates: ZeroDates = "null") -> str:
    """Spark SQL of a text's value in a lake type. ``text`` is SQL of a string, perhaps null.

    Raises ValueError where ``is_readable`` does not hold.
    """
    if not is_readable(form, type_):
        raise ValueError(f"a text of form {form.value} is not read as {type_}")
    if form in (Form.DATE, Form.LOCAL, Form.INSTANT):
        return _dated(form, type_, text, zero_dates)
    if type_ == "boolean":
        wrong = _refused(text, "neither 0 nor 1")
        return f"CASE {text} WHEN '1' THEN true WHEN '0' THEN false ELSE {_if_any(text, wrong)} END"
    if type_.startswith("decimal"):
        return _decimal(type_, text)
    if type_ == "binary":
        return f"to_binary({text}, 'hex')"  # unhex would make null of what is no hex
    if form is Form.BITS:
        digits = f"java_method('java.lang.Double', 'longBitsToDouble', CAST({text} AS BIGINT))"
        return f"CAST({digits} AS {spark_type(type_)})"
    if type_ in _WHOLE or type_ in ("float", "double"):
        return f"CAST({text} AS {spark_type(type_)})"
    return _TEXTS.get(form, _as_it_is)(text)


def printed(form: Form, type_: str, value: str, scale: int | None = None) -> str:
    """Spark SQL of the canonical text of a stored value. ``value`` is SQL of the lake's column.

    ``scale``: digits behind the point that the source's decimal has; by default the lake's.
    Raises ValueError where ``is_readable`` does not hold.
    """
    if not is_readable(form, type_):
        raise ValueError(f"a {type_} is not printed as a text of form {form.value}")
    if type_ == "string":
        return _PRINTED.get(form, _as_it_is)(value)
    if type_ == "boolean":
        return f"CASE WHEN {value} THEN '1' WHEN NOT {value} THEN '0' END"
    if type_.startswith("decimal") and form is Form.VARIABLE:
        return _trimmed(type_, value)
    if type_.startswith("decimal"):
        digits = scale if form is Form.DECIMAL and scale is not None else None
        return _digits(type_, value, 0 if form in (Form.WHOLE, Form.BOOLEAN) else digits)
    if form in (Form.HEX, Form.STRIPPED):
        digest = f"concat('sha256:', sha2({value}, 256))"
        return f"IF(length({value}) > {LONG_BYTES}, {digest}, lower(hex({value})))"
    if form is Form.DATE:
        return f"CAST({value} AS STRING)"
    if form in (Form.LOCAL, Form.INSTANT):
        return f"date_format({value}, 'yyyy-MM-dd HH:mm:ss.SSSSSS')"
    if form is Form.BITS:
        bits = f"java_method('java.lang.Double', 'doubleToLongBits', CAST({value} AS DOUBLE))"
        return f"IF({value} IS NULL, NULL, {bits})"
    if form in (Form.SINGLE, Form.DOUBLE):
        raise ValueError("floating-point numbers are compared by their bits: Form.BITS")
    return f"CAST({value} AS STRING)"


def compared(form: Form) -> Form:
    """The form in which a column is compared: its own, but for floating-point numbers their bits,
    for which Java's digits are not always the shortest."""
    return Form.BITS if form in (Form.SINGLE, Form.DOUBLE) else form


def _as_it_is(text: str) -> str:
    return text


def _refused(text: str, why: str) -> str:
    return f"raise_error(concat('value ', substr({text}, 1, 60), {string_literal(': ' + why)}))"


def _if_any(text: str, refusal: str) -> str:
    """The refusal where there is a value: a null stays null."""
    return f"CASE WHEN {text} IS NOT NULL THEN {refusal} END"


def _decimal(type_: str, text: str) -> str:
    """A cast rounds digits behind the point away: a value that has more of them is refused. NaN and
    infinities, which Debezium sends as null, are null."""
    found = _DECIMAL.fullmatch(type_)
    assert found is not None
    scale, point = int(found[2]), f"instr({text}, '.')"
    more = f"TRIM(TRAILING '0' FROM substr({text}, {point} + {scale + 1}))"
    fits = f"{point} = 0 OR length({text}) - {point} <= {scale} OR {more} = ''"
    return (
        f"CASE WHEN {text} IN ('NaN', 'Infinity', '-Infinity') THEN NULL"
        f" WHEN {fits} THEN CAST({text} AS {spark_type(type_)})"
        f" ELSE {_if_any(text, _refused(text, f'does not fit {type_}'))} END"
    )


def _dated(form: Form, type_: str, text: str, zero_dates: ZeroDates) -> str:
    """Dates with a year of four digits. What no calendar has is null, or an error, as asked."""
    no_day = f"substr({text}, 6, 2) = '00' OR substr({text}, 9, 2) = '00'"
    odd = f"{text} IN ('infinity', '-infinity') OR ({no_day})"
    null = "NULL" if zero_dates == "null" else _refused(text, "no date of a calendar")
    length = 10 if form is Form.DATE else 26
    plain = f"length({text}) = {length} AND {text} >= '0001'"
    return (
        f"CASE WHEN {odd} THEN {null} WHEN {plain} THEN {_cast_date(form, type_, text)}"
        f" ELSE {_if_any(text, _refused(text, 'not a year of 1 to 9999'))} END"
    )


def _cast_date(form: Form, type_: str, text: str) -> str:
    if type_ == "string":
        return f"CASE WHEN endswith({text}, '.000000') THEN left({text}, 19) ELSE {text} END"
    if form is Form.INSTANT:
        return f"CAST(concat({text}, 'Z') AS TIMESTAMP)"
    return f"CAST({text} AS {spark_type(type_)})"


def _digits(type_: str, value: str, scale: int | None) -> str:
    if scale is None:
        return f"CAST({value} AS STRING)"
    found = _DECIMAL.fullmatch(type_)
    assert found is not None
    whole = int(found[1]) - int(found[2])
    return f"CAST(CAST({value} AS DECIMAL({min(38, whole + scale)}, {scale})) AS STRING)"


def _trimmed(type_: str, value: str) -> str:
    """Without zeros at the end: the source's type tells no digits behind the point."""
    text = f"CAST({value} AS STRING)"
    if type_.replace(" ", "").endswith(",0)"):
        return text
    return f"TRIM(TRAILING '.' FROM TRIM(TRAILING '0' FROM {text}))"


def _outside_strings(text: str, change: Callable[[str], str]) -> str:
    """A JSON text changed outside of its strings.

    Escaped backslashes and quotes become signs that no JSON text has, so each quote left begins or
    ends a string: the pieces between quotes are outside and inside by turns.
    """
    hidden = f"replace(replace({text}, '\\\\\\\\', chr(1)), '\\\\\"', chr(2))"
    pieces = f"split({hidden}, '\"')"
    turned = f"transform({pieces}, (piece, i) -> IF(i % 2 = 0, {change('piece')}, piece))"
    joined = f"array_join({turned}, '\"')"
    return f"replace(replace({joined}, chr(2), '\\\\\"'), chr(1), '\\\\\\\\')"


def _compact(text: str) -> str:
    return _outside_strings(text, lambda piece: f"replace({piece}, ' ', '')")


def _spaced(value: str) -> str:
    return _outside_strings(value, lambda p: f"replace(replace({p}, ',', ', '), ':', ': ')")


def _array(text: str) -> str:
    listed = f"startswith({text}, '[')"
    return f"CASE WHEN {listed} THEN {text} ELSE {_if_any(text, _refused(text, 'not read'))} END"


def _variable(text: str) -> str:
    """Debezium sends a numeric that is not finite as null."""
    return f"CASE WHEN {text} IN ('NaN', 'Infinity', '-Infinity') THEN NULL ELSE {text} END"


def _local_text(value: str) -> str:
    return f"CASE WHEN length({value}) = 19 THEN concat({value}, '.000000') ELSE {value} END"


_TEXTS: Mapping[Form, Callable[[str], str]] = {
    Form.COMPACT: _compact,
    Form.ARRAY: _array,
    Form.VARIABLE: _variable,
    Form.DECIMAL: _variable,
}
_PRINTED: Mapping[Form, Callable[[str], str]] = {Form.COMPACT: _spaced, Form.LOCAL: _local_text}
