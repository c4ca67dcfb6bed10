"""Converts columns of Debezium's values to Arrow types, exactly.

A column comes as text: the contents of JSON strings, the digits of numbers, or raw JSON. Arrow
casts it where it can; other values are converted one by one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from changes.formats.debezium import values
from changes.formats.debezium.infinite import PRINTED, infinite
from changes.formats.debezium.items import (
    arrays,
    decimal_at_scale,
    decimals,
    integer,
    unquoted,
    whole_at_scale,
    wrapped_integer,
)
from changes.formats.debezium.types import LARGEST_SCALE, Sense, Wire, WireType
from changes.formats.debezium.untyped import check_stored, words_of
from changes.model.model import ZeroDates
from changes.model.types import SourceType
from changes.sql.convert import Converter, ValueMisfit

_VALUE_SHOWN = 60
"""Characters of a value that an error message quotes."""

_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
"""0001-01-01 and 9999-12-31: the range of Python, Arrow and Spark."""

_DAY_US = 86_400_000_000
_FIRST_US, _LAST_US = _FIRST_DAY * _DAY_US, (_LAST_DAY + 1) * _DAY_US - 1

_NANOS, _PRINTED_NANOS = (
    re.compile(r"-?[0-9]{4,19}"),
    re.compile(r".*\.[0-9]{7,}(Z|[+-][0-9:]+)?"),
)
_FINE = {
    Sense.NANOS: _NANOS, Sense.ZONED: _PRINTED_NANOS, Sense.ISO_TIMESTAMP: _PRINTED_NANOS,
}  # fmt: skip
"""Valid values with more digits of a second than the lake has."""

_TOO_FINE = ": the lake keeps microseconds, a column declared as string keeps all digits"
_ZERO_FRACTION = r"(\.[0-9]{6})0+"
_PER_SECOND = {Sense.TIME_MS: 10**3, Sense.TIME_US: 10**6, Sense.TIME_NS: 10**9}
_TICKS = {Sense.MILLIS: 10**3, Sense.MICROS: 10**6, Sense.NANOS: 10**9}
_PARTS = frozenset((Sense.PARTS_DATE, Sense.PARTS_TIMESTAMP, Sense.PARTS_ZONED))
_DATED = _PARTS | PRINTED | {Sense.DAYS, Sense.MILLIS, Sense.MICROS, Sense.NANOS}
_ONES: dict[Sense, Callable[[str], object]] = {
    Sense.BYTES: values.base64_bytes,
    Sense.VARIABLE: values.variable_text,
    Sense.ISO_TIME: values.iso_time,
    Sense.GEOMETRY: values.geometry,
    Sense.PARTS_DATE: values.parts_date,
    Sense.PARTS_TIME: values.parts_time,
    Sense.PARTS_TIMESTAMP: values.parts_timestamp,
    Sense.PARTS_ZONED: values.parts_zoned,
}
_CODED = frozenset((Sense.BYTES, Sense.BITS))
_STRUCTURED = _PARTS | {Sense.PARTS_TIME, Sense.VARIABLE, Sense.GEOMETRY, Sense.DOCUMENT}
"""Senses whose readers parse JSON themselves."""


class DebeziumConverter:
    """Turns columns into Arrow's, by one pipeline's options. Used by one thread.

    ``nulled`` counts the infinite dates that became null.
    """

    def __init__(self, zero_dates: ZeroDates, zone: str = "UTC") -> None:
        self._zero_dates = zero_dates
        self._zone = zone
        self.nulled = 0

    def column(
        self, text: pa.Array, kind: SourceType, declared: str | None, *, key: bool
    ) -> pa.Array:
        """Raises ValueMisfit for the first value that does not fit, which names ``declared``.

        Dates that the lake can't hold become null by configuration, but never in a key.
        """
        assert isinstance(kind, WireType)
        if kind.stored:
            check_stored(text, kind)
            declared = words_of(kind)  # a later record may have declared another
        if (item := kind.item) is not None:
            of = f"array of {item.sense.value}"
            return arrays(text, item, lambda raws: self.column(raws, item, of, key=False))
        plain = _plain(text, kind)
        if kind.sense is Sense.PLAIN:
            converter = Converter(self._zone, self._zero_dates)
            found = converter.column(plain, kind, declared, key=key)
            self.nulled += converter.nulled
            return found
        try:
            return _convert(plain, kind)
        except pa.ArrowInvalid:
            pass
        if kind.sense in _DATED and not key and self._zero_dates == "null":
            endless = infinite(plain, kind.sense)
            plain = pc.if_else(endless, pa.scalar(None, pa.string()), plain)
            self.nulled += pc.sum(endless, min_count=0).as_py()
        if _fits(plain, kind):
            return _convert(plain, kind)
        row = _first_misfit(plain, kind)
        misfit = plain[row].as_py()
        quoted = kind.wire is Wire.RAW and kind.sense is Sense.DECIMAL
        shown = repr((unquoted(misfit) if quoted else misfit)[:_VALUE_SHOWN])
        kinds = declared or str(kind.arrow)
        article = "an" if kinds[:1].lower() in "aeiou" else "a"
        finer = kind.sense in _FINE and _FINE[kind.sense].fullmatch(misfit)
        why = _TOO_FINE if finer else ""
        raise ValueMisfit(row, f"{shown} is not {article} {kinds}{why}")


def _plain(text: pa.Array, kind: WireType) -> pa.Array:
    """Strings of raw JSON without their quotes; decimals keep them, as the sign of base64."""
    if kind.wire is not Wire.RAW or kind.sense in _STRUCTURED or kind.sense is Sense.DECIMAL:
        return text
    found = [None if v is None else unquoted(v) for v in text.to_pylist()]
    if kind.sense in _CODED:
        # A number's digits may be valid base64.
        raws = zip(found, text.to_pylist(), strict=True)
        found = [v if raw is None or raw[:1] == '"' else f"{v} (no text)" for v, raw in raws]
    return pa.array(found, pa.string())


def _convert(text: pa.Array, kind: WireType) -> pa.Array:
    """Raises pa.ArrowInvalid where any value does not fit exactly."""
    spelled = pa.types.is_string(kind.arrow)
    match kind.sense:
        case Sense.TEXT | Sense.DOCUMENT:
            return text
        case Sense.DAYS if spelled:
            return _each(text, lambda value: values.day_text(integer(value)), kind.arrow)
        case Sense.MILLIS | Sense.MICROS | Sense.NANOS if spelled:
            ticks = _TICKS[kind.sense]
            return _each(text, lambda value: values.moment_text(integer(value), ticks), kind.arrow)
        case Sense.WHOLE:
            return _whole_or_boolean(text, kind.arrow)
        case Sense.FLOAT:
            return _floats(text, kind.arrow)
        case Sense.BOOLEAN:
            return _booleans(text)
        case Sense.DAYS:
            return _days(text)
        case Sense.DATE:
            return _dates(text)
        case Sense.MILLIS | Sense.MICROS | Sense.NANOS:
            return _moments(text, kind)
        case Sense.ZONED:
            return _printed(text, kind.arrow)
        case Sense.ISO_DATE | Sense.ISO_TIMESTAMP:
            return _printed(pc.replace_substring_regex(text, "Z$", ""), kind.arrow)
        case Sense.DECIMAL | Sense.BITS | Sense.WRAPPED:
            return _integers(text, kind)
        case Sense.TIME_MS | Sense.TIME_US | Sense.TIME_NS:
            per_second = _PER_SECOND[kind.sense]
            return _each(
                text, lambda value: values.time_text(integer(value), per_second), kind.arrow
            )
        case _:
            return _in_range(_each(text, _ONES[kind.sense], kind.arrow))


def _whole_or_boolean(text: pa.Array, arrow: pa.DataType) -> pa.Array:
    """MySQL's TINYINT(1) comes as either."""
    if pc.any(pc.match_substring_regex(text, "[^0-9-]")).as_py():
        text = pc.if_else(pc.equal(text, "true"), "1", text)
        text = pc.if_else(pc.equal(text, "false"), "0", text)
    return _whole_numbers(text, arrow)


def _whole_numbers(text: pa.Array, arrow: pa.DataType) -> pa.Array:
    if pc.any(pc.match_substring_regex(text, "[^0-9-]")).as_py():
        raise pa.ArrowInvalid("not a whole number")
    return text.cast(arrow)


def _floats(text: pa.Array, arrow: pa.DataType) -> pa.Array:
    """NaN and infinities stay; a number too large for the type is refused."""
    found = text.cast(arrow)
    odd = pc.invert(pc.is_finite(found))
    if pc.any(odd).as_py():
        named = pc.match_substring_regex(text, "^[+-]?(?i:nan|inf|infinity)$")
        if pc.any(pc.and_not(odd, named)).as_py():
            raise pa.ArrowInvalid("too large a number")
    return found


def _booleans(text: pa.Array) -> pa.Array:
    known = pc.is_in(text, value_set=pa.array(["true", "false", "1", "0", None]))
    if pc.all(known).as_py() is False:
        raise pa.ArrowInvalid("not a boolean")
    return text.cast(pa.bool_())


def _days(text: pa.Array) -> pa.Array:
    days = _whole_numbers(text, pa.int32())
    _between(days, _FIRST_DAY, _LAST_DAY)
    return days.cast(pa.date32())


def _dates(text: pa.Array) -> pa.Array:
    """Each in days or as ISO text."""
    counted = pc.fill_null(pc.match_substring_regex(text, "^-?[0-9]+$"), False)
    none = pa.scalar(None, pa.string())
    read = _in_range(pc.if_else(counted, none, text).cast(pa.date32()))
    return pc.coalesce(read, _days(pc.if_else(counted, text, none)))


def _moments(text: pa.Array, kind: WireType) -> pa.Array:
    ticks = _whole_numbers(text, pa.int64())
    if kind.sense is Sense.MILLIS:
        _between(ticks, _FIRST_US // 1000, _LAST_US // 1000)
        ticks = pc.multiply(ticks, 1000)
    elif kind.sense is Sense.NANOS:
        micros = pc.divide(ticks, 1000)
        if pc.all(pc.equal(pc.multiply(micros, 1000), ticks)).as_py() is False:
            raise pa.ArrowInvalid("more digits than the lake has")
        ticks = micros
    _between(ticks, _FIRST_US, _LAST_US)
    return ticks.cast(kind.arrow)


def _between(numbers: pa.Array, first: int, last: int) -> None:
    ends = pc.min_max(numbers)
    low, high = ends["min"].as_py(), ends["max"].as_py()
    if low is not None and (low < first or high > last):
        raise pa.ArrowInvalid("a year before 1 or after 9999")


def _in_range(found: pa.Array) -> pa.Array:
    if pa.types.is_date(found.type):
        _between(found.cast(pa.int32()), _FIRST_DAY, _LAST_DAY)
    elif pa.types.is_timestamp(found.type):
        _between(found.cast(pa.int64()), _FIRST_US, _LAST_US)
    return found


def _printed(text: pa.Array, arrow: pa.DataType) -> pa.Array:
    try:
        found = text.cast(arrow)
    except pa.ArrowInvalid:
        found = pc.replace_substring_regex(text, _ZERO_FRACTION, r"\1").cast(arrow)
    return _in_range(found)


def _integers(text: pa.Array, kind: WireType) -> pa.Array:
    """Integers of more than 64 bits, also the unscaled ones of decimals."""
    scale, length, raw = kind.scale, kind.length, kind.wire is Wire.RAW
    far = kind.sense is Sense.DECIMAL and scale > LARGEST_SCALE
    read: Callable[[str], int]
    if kind.sense is Sense.BITS:
        read = lambda value: values.bits(value, length)  # noqa: E731
    elif kind.sense is Sense.WRAPPED:
        read = wrapped_integer
    elif far:
        read = lambda value: whole_at_scale(value, kind.scale, raw=raw)  # noqa: E731
        scale = 0
    elif raw:
        read = lambda value: decimal_at_scale(value, scale)  # noqa: E731
    else:
        read = values.unscaled
    found = _ones(text.to_pylist(), read)
    if pa.types.is_string(kind.arrow):
        texts = [None if v is None else values.decimal_text(v, scale) for v in found]
        return pa.array(texts, pa.string())
    if pa.types.is_integer(kind.arrow):
        return pa.array(found, kind.arrow)
    # A column may hold more digits after the point than its values came with.
    return decimals(found, kind.arrow, kind.arrow.scale - scale)


def _each(text: pa.Array, read: Callable[[str], object], arrow: pa.DataType) -> pa.Array:
    return pa.array(_ones(text.to_pylist(), read), arrow)


def _ones(texts: Sequence[str | None], read: Callable[[str], Any]) -> list[Any]:
    try:
        return [None if text is None else read(text) for text in texts]
    except (ValueError, ArithmeticError, RecursionError, msgspec.DecodeError) as error:
        raise pa.ArrowInvalid(str(error)) from error


def _first_misfit(text: pa.Array, kind: WireType) -> int:
    """Find the first value that ``_convert`` refuses, by halving. There must be one."""
    low, high = 0, len(text)
    while high - low > 1:
        middle = (low + high) // 2
        if _fits(text.slice(low, middle - low), kind):
            low = middle
        else:
            high = middle
    return low


def _fits(text: pa.Array, kind: WireType) -> bool:
    try:
        _convert(text, kind)
    except pa.ArrowInvalid:
        return False
    return True
