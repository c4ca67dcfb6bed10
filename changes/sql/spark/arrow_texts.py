"""Canonical texts in Arrow: what ``canonical`` says in Spark's SQL, for rows that no Spark reads.

Pure. Reading gives the value that Spark's reading gives, or refuses the text by name; a value
prints as one text whatever the width of its type.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from changes.model import types as decimals
from changes.model.model import ZeroDates
from changes.sql.forms import Form, bytes_text
from changes.sql.spark.canonical import is_readable
from changes.sql.spark.schema import arrow_type

_DATED = frozenset((Form.DATE, Form.LOCAL, Form.INSTANT))
_NO_NUMBER = pa.array(["NaN", "Infinity", "-Infinity"])
_NULL = pa.scalar(None, pa.string())
_JSON = re.compile(r'("(?:[^"\\]|\\.)*")| ', re.DOTALL)
_SHOWN = 60
_NAN_BITS = 0x7FF8 << 48
"""Java's one NaN."""


class TextUnreadable(Exception):
    """A text that is no value of its column's type: one line that names it."""


def read(form: Form, type_: str, texts: pa.Array, zero_dates: ZeroDates = "null") -> pa.Array:
    """Values of the lake's type. ``texts`` are strings, bytes where the form is HEX.

    Raises TextUnreadable, and ValueError where ``canonical.is_readable`` does not hold.
    """
    if not is_readable(form, type_):
        raise ValueError(f"a text of form {form.value} is not read as {type_}")
    if form is Form.HEX:
        return pc.cast(texts, pa.binary())
    if form in _DATED:
        return _dated(form, type_, texts, zero_dates)
    if form in (Form.DECIMAL, Form.VARIABLE):
        texts = pc.if_else(pc.is_in(texts, _NO_NUMBER), _NULL, texts)
    if type_ == "boolean":
        return _booleans(texts)
    if type_ == "binary":
        return pa.array(
            [None if t is None else bytes.fromhex(t) for t in texts.to_pylist()], "binary"
        )
    if type_ == "string":
        return _strings(form, texts)
    return _cast(texts, arrow_type(type_))


def natural(type_: str) -> Form:
    """The form in which each value of a lake's type has one text."""
    return _NATURAL.get(type_.partition("(")[0], Form.TEXT)


def printed(column: pa.Array) -> pa.Array:
    """The texts of values, in their type's natural form."""
    type_ = column.type
    if pa.types.is_binary(type_):
        return pa.array(
            [None if v is None else bytes_text(v) for v in column.to_pylist()], "string"
        )
    if pa.types.is_boolean(type_):
        return pc.cast(pc.cast(column, pa.int8()), pa.string())
    if pa.types.is_floating(type_):
        return _bits(column)
    if pa.types.is_timestamp(type_):
        column = pc.cast(column, pa.timestamp("us"))
    return decimals.texts(column) if pa.types.is_decimal(type_) else pc.cast(column, pa.string())


def row_text(texts: Sequence[str | None], frees: Sequence[bool]) -> str:
    """A row's text, as ``checksums.row_text`` makes it in SQL. ``frees``: as of ``TextColumn``."""
    return "".join(
        "n," if text is None else f"{len(text)}:{text}" if free else f"{text},"
        for text, free in zip(texts, frees, strict=True)
    )


def _strings(form: Form, texts: pa.Array) -> pa.Array:
    if form is Form.COMPACT:
        found = (None if t is None else _compact(t) for t in texts.to_pylist())
        return pa.array(list(found), pa.string())
    if form is Form.ARRAY:
        _check(texts, pc.starts_with(texts, "["), "not read")
    return texts


def _compact(text: str) -> str:
    return _JSON.sub(lambda found: found[1] or "", text)


def _booleans(texts: pa.Array) -> pa.Array:
    _check(texts, pc.is_in(texts, pa.array(["0", "1"])), "neither 0 nor 1")
    return pc.equal(texts, "1")


def _dated(form: Form, type_: str, texts: pa.Array, zero_dates: ZeroDates) -> pa.Array:
    """As ``canonical.read``: what no calendar has is null, or refused."""
    odd = pc.is_in(texts, pa.array(["infinity", "-infinity"]))
    for at in (5, 8):
        odd = pc.or_(odd, pc.equal(pc.utf8_slice_codeunits(texts, at, at + 2), "00"))
    odd = pc.fill_null(odd, False)
    if zero_dates == "error":
        _check(texts, pc.invert(odd), "no date of a calendar")
    texts = pc.if_else(odd, _NULL, texts)
    length = 10 if form is Form.DATE else 26
    plain = pc.and_(pc.equal(pc.utf8_length(texts), length), pc.greater_equal(texts, "0001"))
    _check(texts, plain, "not a year of 1 to 9999")
    if type_ == "string":
        whole = pc.ends_with(texts, ".000000")
        return pc.if_else(whole, pc.utf8_slice_codeunits(texts, 0, 19), texts)
    if form is Form.INSTANT:
        return pc.cast(_cast(texts, pa.timestamp("us")), pa.timestamp("us", "UTC"))
    return _cast(texts, arrow_type(type_))


def _cast(texts: pa.Array, type_: pa.DataType) -> pa.Array:
    try:
        return pc.cast(texts, type_)
    except pa.ArrowInvalid:
        for text in texts:
            try:
                pc.cast(text, type_)
            except pa.ArrowInvalid:
                line = f"value {str(text.as_py())[:_SHOWN]}: does not fit {type_}"
                raise TextUnreadable(line) from None
        raise


def _check(texts: pa.Array, fine: pa.Array, why: str) -> None:
    """Refuse the first text that is not fine; a null is."""
    wrong = texts.filter(pc.invert(pc.or_(pc.is_null(texts), pc.fill_null(fine, False))))
    if len(wrong):
        raise TextUnreadable(f"value {wrong[0].as_py()[:_SHOWN]}: {why}")


def _bits(column: pa.Array) -> pa.Array:
    """The bits of doubles as signed numbers; there is one NaN, as Java has it."""
    doubles = pc.cast(column, pa.float64())
    bits = pc.if_else(pc.is_nan(doubles), pa.scalar(_NAN_BITS), doubles.view(pa.int64()))
    return pc.cast(bits, pa.string())


_NATURAL: Mapping[str, Form] = {
    "boolean": Form.BOOLEAN,
    "int": Form.WHOLE,
    "long": Form.WHOLE,
    "decimal": Form.DECIMAL,
    "float": Form.BITS,
    "double": Form.BITS,
    "string": Form.TEXT,
    "binary": Form.HEX,
    "date": Form.DATE,
    "timestamp": Form.LOCAL,
    "timestamptz": Form.INSTANT,
}
