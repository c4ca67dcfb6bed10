"""Whole columns of text to Arrow types, exactly: nothing is rounded, cut off or wrapped."""

from __future__ import annotations

import binascii
import zoneinfo
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from changes.model.model import ZeroDates
from changes.model.types import TIMESTAMP, SourceType, TextForm
from changes.sql.text_forms import lacks_digits, reader_of

_DIGITS = b"0123456789-"

_YEAR_ONE_DAYS = -719_162
"""0001-01-01 in days since 1970. Arrow reads the year 0000, which Python and Spark don't have."""

_YEAR_ONE_US = _YEAR_ONE_DAYS * 86_400_000_000

_ZERO_DATE = r"^[0-9]{4}-(00-[0-9]{2}|[0-9]{2}-00)"
"""What MySQL calls a zero date: month or day is zero. No lake has such a day."""

_LARGEST = 2**64 - 1

_NO_MORE_DIGITS = r"([.][0-9]{6})0+"
"""Digits of a second beyond microseconds that are all zero."""

_OFFSET = r":[0-9]{2}([.][0-9]+)? *(Z|[+-][0-9]{2}(:?[0-9]{2})?)$"
"""A time of day with its zone."""

_VALUE_SHOWN = 60
"""Characters of a value that an error message quotes."""


class ValueMisfit(Exception):
    """A value of a column is not one of its type: its row, and why without the column's name."""

    def __init__(self, row: int, reason: str) -> None:
        super().__init__(reason)
        self.row = row


class Converter:
    """Turns columns of text into Arrow's, by one pipeline's options. Used by one thread.

    ``nulled`` counts the zero dates that became null.
    """

    def __init__(self, zone: str, zero_dates: ZeroDates) -> None:
        self._zone = zone
        self._zero_dates = zero_dates
        self.nulled = 0

    def column(
        self, text: pa.Array, kind: SourceType, declared: str | None, *, key: bool
    ) -> pa.Array:
        """Raises ValueMisfit for the first value that does not fit; ``declared`` is for its text.

        In a key zero dates are refused whatever the option: keys that became null would be one.
        """
        try:
            return convert(text, kind, self._zone)
        except pa.ArrowInvalid:
            pass
        dated = pa.types.is_date(kind.arrow) or pa.types.is_timestamp(kind.arrow)
        if dated and not key and self._zero_dates == "null":
            zero = pc.match_substring_regex(text, _ZERO_DATE)
            text = pc.if_else(zero, pa.scalar(None, pa.string()), text)
            self.nulled += pc.sum(zero, min_count=0).as_py()
        if fits(text, kind, self._zone):
            return convert(text, kind, self._zone)
        row = first_misfit(text, kind, self._zone)
        shown = repr(text[row].as_py()[:_VALUE_SHOWN])
        words = declared or str(kind.arrow)
        if lacks_digits(words):
            words = _digits_of(kind.arrow)
        if kind.form in (TextForm.ENUM, TextForm.SET) and not kind.labels:
            raise ValueMisfit(row, f"{shown} counts labels that are not named by {words}")
        article = "an" if words[:1].lower() in "aeiou" else "a"
        raise ValueMisfit(row, f"{shown} is not {article} {words}")


def _digits_of(arrow: pa.DataType) -> str:
    """The words of an error about a decimal whose declared type has no digits."""
    words = f"decimal({arrow.precision},{arrow.scale})"
    if words != "decimal(10,0)":
        return words
    return (
        f"{words}, which MySQL means by a decimal without digits; where its writer leaves them "
        f"out, declare the column in types"
    )


def check_zone(name: str) -> None:
    """Raise ValueError unless the zone is known here, to Python and to Arrow alike."""
    try:
        zoneinfo.ZoneInfo(name)
        pc.assume_timezone(pa.array([0], TIMESTAMP), name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError(
            f"time zone {name!r} is not known on this machine (is tzdata installed?)"
        ) from error


def convert(text: pa.Array, kind: SourceType, zone: str) -> pa.Array:
    """Cast a column of text; raises pa.ArrowInvalid where any value does not fit exactly.

    A point in time is read in ``zone``. A reading that the zone has twice (the clocks go back)
    is taken as the first; one that it skips is refused.
    """
    arrow = kind.arrow
    if kind.form is TextForm.BYTES:
        return _bytes(text)
    if kind.form is TextForm.BASE64:
        return _base64(text)
    if (read := reader_of(kind)) is not None:
        return _each(text, read)
    if pa.types.is_string(arrow):
        return text
    if kind.form is TextForm.UNSIGNED:
        return _unsigned(text, arrow)
    if pa.types.is_integer(arrow) or pa.types.is_boolean(arrow):
        return _integers(text, arrow)
    if pa.types.is_floating(arrow):
        return _floats(text, arrow)
    if pa.types.is_timestamp(arrow):
        return _timestamps(text, arrow, zone)
    result = text.cast(arrow)
    if pa.types.is_date(arrow):
        _not_before(result, pa.scalar(_YEAR_ONE_DAYS, pa.int32()).cast(arrow))
    return result


def _bytes(text: pa.Array) -> pa.Array:
    try:
        values = [None if v is None else v.encode("latin-1") for v in text.to_pylist()]
    except UnicodeEncodeError as error:
        raise pa.ArrowInvalid("a character that stands for no byte") from error
    return pa.array(values, pa.binary())


def _base64(text: pa.Array) -> pa.Array:
    try:
        values = [
            None if v is None else binascii.a2b_base64(v, strict_mode=True)
            for v in text.to_pylist()
        ]
    except ValueError as error:
        raise pa.ArrowInvalid(f"no base64: {error}") from error
    return pa.array(values, pa.binary())


def _each(text: pa.Array, read: Callable[[str], str]) -> pa.Array:
    """Read each distinct value once."""
    coded = text.dictionary_encode()
    values = pa.array([read(value) for value in coded.dictionary.to_pylist()], pa.string())
    return values.take(coded.indices)


def _integers(text: pa.Array, kind: pa.DataType) -> pa.Array:
    """Arrow also reads 0x… as two's complement: only digits are an integer here."""
    values = text.buffers()[2]
    if values is not None and values.to_pybytes().translate(None, _DIGITS):
        odd = pc.match_substring_regex(text, "[^0-9-]")
        if pc.any(odd).as_py():
            raise pa.ArrowInvalid("not a whole number")
    return text.cast(kind)


def _unsigned(text: pa.Array, kind: pa.DataType) -> pa.Array:
    """Refuses negative numbers (they came through a signed type) and more than 64 bits."""
    result = _integers(text, kind)
    ends = pc.min_max(result)
    low, high = ends["min"].as_py(), ends["max"].as_py()
    if low is not None and (low < 0 or high > _LARGEST):
        raise pa.ArrowInvalid("not an unsigned integer")
    return result


def _floats(text: pa.Array, kind: pa.DataType) -> pa.Array:
    result = text.cast(kind)
    if pc.all(pc.is_finite(result)).as_py() is False:
        raise pa.ArrowInvalid("not a finite number")
    return result


def _timestamps(text: pa.Array, kind: pa.DataType, zone: str) -> pa.Array:
    try:
        return _local(text, kind, zone)
    except pa.ArrowInvalid:
        text = pc.replace_substring_regex(text, _NO_MORE_DIGITS, r"\1")
    if kind.tz is None:
        return _local(text, kind, zone)
    zoned = pc.fill_null(pc.match_substring_regex(text, _OFFSET), False)
    none = pa.scalar(None, pa.string())
    local = _local(pc.if_else(zoned, none, text), kind, zone)
    with_zone = pc.if_else(zoned, text, none)
    with_zone = pc.replace_substring_regex(with_zone, r" +(Z|[+-]\S*)$", r"\1").cast(kind)
    _not_before(with_zone, pa.scalar(_YEAR_ONE_US, kind))
    return pc.coalesce(local, with_zone)


def _local(text: pa.Array, kind: pa.DataType, zone: str) -> pa.Array:
    """Texts without a zone."""
    local = text.cast(TIMESTAMP)
    _not_before(local, pa.scalar(_YEAR_ONE_US, TIMESTAMP))
    if kind.tz is None:
        return local
    if zone == "UTC":
        return local.cast(kind)
    return pc.assume_timezone(local, zone, ambiguous="earliest", nonexistent="raise").cast(kind)


def _not_before(values: pa.Array, first: pa.Scalar) -> None:
    least = pc.min(values)
    if least.is_valid and pc.less(least, first).as_py():
        raise pa.ArrowInvalid("a year before 1")


def first_misfit(text: pa.Array, kind: SourceType, zone: str) -> int:
    """Find the first value that ``convert`` refuses, by halving. There must be one."""
    low, high = 0, len(text)
    while high - low > 1:
        middle = (low + high) // 2
        if fits(text.slice(low, middle - low), kind, zone):
            low = middle
        else:
            high = middle
    return low


def fits(text: pa.Array, kind: SourceType, zone: str) -> bool:
    """Whether ``convert`` takes all of these values."""
    try:
        convert(text, kind, zone)
    except pa.ArrowInvalid:
        return False
    return True
