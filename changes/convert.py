"""Whole columns of text to Arrow types, exactly: nothing is rounded, cut off or wrapped."""

from __future__ import annotations

import zoneinfo

import pyarrow as pa
import pyarrow.compute as pc

from changes.types import TIMESTAMP

_DIGITS = b"0123456789-"

_YEAR_ONE_DAYS = -719_162
"""0001-01-01 in days since 1970. Arrow reads the year 0000, neither Python nor Spark has it."""

_YEAR_ONE_US = _YEAR_ONE_DAYS * 86_400_000_000


def check_zone(name: str) -> None:
    """Raise ValueError unless the zone is known here, to Python and to Arrow alike."""
    try:
        zoneinfo.ZoneInfo(name)
        pc.assume_timezone(pa.array([0], TIMESTAMP), name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError(
            f"time zone {name!r} is not known on this machine (is tzdata installed?)"
        ) from error


def convert(text: pa.Array, kind: pa.DataType, zone: str) -> pa.Array:
    """Cast a column of text; raises pa.ArrowInvalid where any value does not fit exactly.

    A point in time is read in ``zone``. A reading that the zone has twice (the clocks go back)
    is taken as the first; one that it skips is refused.
    """
    if pa.types.is_string(kind):
        return text
    if pa.types.is_integer(kind):
        return _integers(text, kind)
    if pa.types.is_floating(kind):
        return _floats(text, kind)
    if pa.types.is_timestamp(kind):
        return _timestamps(text, kind, zone)
    result = text.cast(kind)
    if pa.types.is_date(kind):
        _not_before(result, pa.scalar(_YEAR_ONE_DAYS, pa.int32()).cast(kind))
    return result


def _integers(text: pa.Array, kind: pa.DataType) -> pa.Array:
    """Arrow also reads 0x… as two's complement: only digits are an integer here."""
    values = text.buffers()[2]
    if values is not None and values.to_pybytes().translate(None, _DIGITS):
        odd = pc.match_substring_regex(text, "[^0-9-]")
        if pc.any(odd).as_py():
            raise pa.ArrowInvalid("not a whole number")
    return text.cast(kind)


def _floats(text: pa.Array, kind: pa.DataType) -> pa.Array:
    result = text.cast(kind)
    if pc.all(pc.is_finite(result)).as_py() is False:
        raise pa.ArrowInvalid("not a finite number")
    return result


def _timestamps(text: pa.Array, kind: pa.DataType, zone: str) -> pa.Array:
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


def first_misfit(text: pa.Array, kind: pa.DataType, zone: str) -> int:
    """Find the first value that ``convert`` refuses, by halving. There must be one."""
    low, high = 0, len(text)
    while high - low > 1:
        middle = (low + high) // 2
        if fits(text.slice(low, middle - low), kind, zone):
            low = middle
        else:
            high = middle
    return low


def fits(text: pa.Array, kind: pa.DataType, zone: str) -> bool:
    """Tell whether ``convert`` takes all of these values."""
    try:
        convert(text, kind, zone)
    except pa.ArrowInvalid:
        return False
    return True
