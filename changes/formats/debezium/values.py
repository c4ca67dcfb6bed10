"""Converts single values of Debezium that no Arrow cast reads; each raises ValueError for a misfit.

Values of structures are parsed JSON, numbers with a fraction Decimal.
"""

from __future__ import annotations

import binascii
import json
import re
from collections.abc import Mapping
from datetime import date
from decimal import Context, Decimal, DecimalException, Inexact, InvalidOperation, Overflow
from typing import Any

_EPOCH = date(1970, 1, 1).toordinal()
_DAY_S = 86_400
_ISO_TIME = re.compile(r"(-?)(\d{2,3}):([0-5]\d)(?::([0-5]\d)(?:\.(\d{1,9}))?)?Z?", re.ASCII)
_NUMERIC = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)(E[+-]?\d+)?|NaN|[+-]?Infinity", re.I | re.ASCII)
_SRID_BYTES = 4
_LONGEST_TIME_S = 839 * 3600
"""MySQL's TIME ends before 839 hours, either way; all others before 24."""
_MOST_DIGITS = 1000
_EXACT = Context(prec=_MOST_DIGITS, traps=[InvalidOperation, Inexact, Overflow])
"""More digits than any source has; nothing computed in it is rounded."""

INFINITE = ("POSITIVE_INFINITY", "NEGATIVE_INFINITY")


class Infinite(ValueError):
    """PostgreSQL's infinity: no date of the lake's."""


def base64_bytes(text: str) -> bytes:
    """Bytes of base64, strictly: no other characters are skipped."""
    return binascii.a2b_base64(text, strict_mode=True)


def parsed(raw: str) -> Any:
    """A JSON value, exactly."""
    return json.loads(raw, parse_float=Decimal)


def unscaled(text: str) -> int:
    """The integer of a Decimal: big-endian, two's complement."""
    found = base64_bytes(text)
    if not found:
        raise ValueError("no byte")
    return int.from_bytes(found, "big", signed=True)


def number_at_scale(text: str, scale: int) -> int:
    """A JSON number as the unscaled integer of that scale; more digits are a misfit."""
    try:
        moved = _EXACT.scaleb(_EXACT.create_decimal(text), scale)
    except DecimalException as error:
        raise ValueError("not a number") from error
    if not moved.is_finite() or moved.adjusted() > _MOST_DIGITS:
        raise ValueError("not a number of a source")
    if moved != moved.to_integral_value(context=_EXACT):
        raise ValueError("more digits than the scale has")
    return int(moved)


def decimal_text(unscaled_value: int, scale: int) -> str:
    """A decimal in plain digits, all those of its scale."""
    if scale <= 0:
        return str(unscaled_value * 10 ** min(-scale, 1000))
    sign, digits = "-" if unscaled_value < 0 else "", str(abs(unscaled_value)).zfill(scale + 1)
    return f"{sign}{digits[:-scale]}.{digits[-scale:]}"


def variable_text(raw: str) -> str:
    """A decimal with its own scale, ``{"scale": 2, "value": "…"}``."""
    value = parsed(raw)
    if isinstance(value, dict):
        scale, given = value.get("scale"), value.get("value")
        if not isinstance(scale, int) or abs(scale) > 20_000:
            raise ValueError("no scale")
        if isinstance(given, str):
            return decimal_text(unscaled(given), scale)
        return decimal_text(number_at_scale(str(given), scale), scale)
    if isinstance(value, str) and _NUMERIC.fullmatch(value):
        return value
    if isinstance(value, Decimal):
        if abs(value.adjusted()) > _MOST_DIGITS:
            raise ValueError("not a number of a source")
        return f"{value:f}"
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)  # formatting it as ``f`` would make a float of it
    raise ValueError("not a decimal")


def bits(text: str, length: int) -> int:
    """The integer of Bits: little-endian."""
    value = int.from_bytes(base64_bytes(text), "little")
    if value >> length:
        raise ValueError("more bits than the column has")
    return value


def time_text(ticks: int, per_second: int) -> str:
    """A time as ``[-]HH:MM:SS[.ffffff]``, nine digits where six don't show all of it."""
    seconds, rest = divmod(abs(ticks), per_second)
    if seconds >= _LONGEST_TIME_S:
        raise ValueError("more hours than any time has")
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    part = ""
    if rest:
        nanos = rest * (1_000_000_000 // per_second)
        part = f".{nanos // 1000:06}" if nanos % 1000 == 0 else f".{nanos:09}"
    return f"{'-' if ticks < 0 else ''}{hour:02}:{minute:02}:{second:02}{part}"


def day_text(days: int) -> str:
    """A day, counted from 1970, as ``YYYY-MM-DD``."""
    return date.fromordinal(days + _EPOCH).isoformat()


def moment_text(ticks: int, per_second: int) -> str:
    """A date and time, counted from 1970, as text."""
    days, rest = divmod(ticks, _DAY_S * per_second)
    return f"{day_text(days)} {time_text(rest, per_second)}"


def iso_time(text: str) -> str:
    """``04:05:11.789Z`` in the form of ``time_text``."""
    found = _ISO_TIME.fullmatch(text)
    if found is None:
        raise ValueError("not a time")
    sign, hour, minute, second, part = found.groups()
    seconds = (int(hour) * 60 + int(minute)) * 60 + int(second or 0)
    ticks = seconds * 10**9 + int((part or "").ljust(9, "0") or 0)
    return time_text(-ticks if sign else ticks, 10**9)


def geometry(raw: str) -> bytes:
    """Four bytes of SRID, little-endian, then WKB: the form in which MySQL stores it."""
    value = parsed(raw)
    if not isinstance(value, dict) or not isinstance(value.get("wkb"), str):
        raise ValueError("no wkb")
    srid = value.get("srid") or 0
    if not isinstance(srid, int) or not 0 <= srid < 1 << 32:
        raise ValueError("no srid")
    return srid.to_bytes(_SRID_BYTES, "little") + base64_bytes(value["wkb"])


def parts_date(raw: str) -> int:
    """Days since 1970 of ``{"year": …, "month": …, "day": …}``."""
    return _days(_structure(raw))


def parts_time(raw: str) -> str:
    """The text of ``{"hour": …, "minute": …, "second": …, "nanos": …}``."""
    return time_text(_picos(_structure(raw), whole=1000) // 1000, 10**9)


def parts_timestamp(raw: str) -> int:
    """Microseconds since 1970 of a date and a time; an offset is taken off."""
    value = _structure(raw)
    seconds = _days(value) * _DAY_S - _int(value, "offsetSeconds")
    return seconds * 10**6 + _picos(value, whole=10**6) // 10**6


def parts_zoned(raw: str) -> int:
    """As ``parts_timestamp``; without an offset it is no point in time."""
    if _structure(raw).get("offsetSeconds") is None:
        raise ValueError("no offset")
    return parts_timestamp(raw)


def _structure(raw: str) -> Mapping[str, Any]:
    value = parsed(raw)
    if not isinstance(value, dict):
        raise ValueError("not a structure")
    if value.get("specialValue") in INFINITE:
        raise Infinite("infinite")
    if value.get("specialValue") is not None:
        raise ValueError("a special value")
    return value


def _days(value: Mapping[str, Any]) -> int:
    found = date(_int(value, "year"), _int(value, "month"), _int(value, "day"))
    return found.toordinal() - _EPOCH


def _picos(value: Mapping[str, Any], whole: int) -> int:
    """The time of day in picoseconds; they must be a multiple of ``whole``."""
    minutes = _int(value, "hour") * 60 + _int(value, "minute")
    seconds = minutes * 60 + _int(value, "second")
    found = seconds * 10**12 + _int(value, "nanos") * 1000 + _int(value, "picoseconds")
    if found % whole:
        raise ValueError("more digits than the lake has")
    return found


def _int(value: Mapping[str, Any], name: str) -> int:
    found = value.get(name)
    if found is None:
        return 0
    if not isinstance(found, int) or isinstance(found, bool):
        raise ValueError(f"{name} is no integer")
    return found
