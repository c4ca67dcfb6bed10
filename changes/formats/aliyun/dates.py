"""Reads Alibaba DTS's dates and times as text. They come in parts, any of which may be missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from changes.decoding.layout import Refused

DATE, TIME, YEAR = "date", "time", "year"
"""Declared types whose values have only some of the parts; the others may be 0."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND_US = 1_000_000
_DAY_PARTS = ("year", "month", "day")
_TIME_PARTS = ("hour", "minute", "second", "millis")

Parts = Sequence[int | None]


def instant(members: Mapping[str, Any], _declared: str | None) -> str:
    """Seconds since 1970, and millionths of a second, though their member is named ``millis``."""
    seconds, millionths = members["timestamp"], members["millis"]
    if not 0 <= millionths < _SECOND_US:
        raise Refused(f"{millionths} millionths are more than a second")
    try:
        when = _EPOCH + timedelta(seconds=seconds, microseconds=millionths)
    except OverflowError as error:
        raise Refused(f"{seconds} seconds are no time") from error
    return when.replace(tzinfo=None).isoformat(" ")


def zoned(members: Mapping[str, Any], declared: str | None) -> str:
    """A date, a time and their zone."""
    return f"{date_time(members['value'], declared)} {members['timezone']}".rstrip()


def date_time(members: Mapping[str, Any], declared: str | None) -> str:
    """All parts of the value, so one that does not fit the declared type is found.

    Raises Refused for parts that are neither a date, a time, both, nor an interval.
    """
    day: Parts = [members[name] for name in _DAY_PARTS]
    time: Parts = [members[name] for name in _TIME_PARTS]
    if declared == YEAR and day[0] is not None and not any((*day[1:], *time)):
        return str(day[0])
    has_day = day != [None] * 3 and not (declared == TIME and not any(day))
    has_time = time[0] is not None and not (declared == DATE and not any(time))
    if has_day and None in day:
        return _interval(day, time)
    if not has_day and not has_time:
        raise Refused("a date without any part")
    return " ".join([_date(day)] * has_day + [_time(time)] * has_time)


def _date(parts: Parts) -> str:
    year, month, day = (part or 0 for part in parts)
    return f"{'-' if year < 0 else ''}{abs(year):04}-{month:02}-{day:02}"


def _time(parts: Parts) -> str:
    """A time; all parts of a negative one are negative."""
    sign, (hour, minute, second, millionth) = _signed(parts)
    shown = f"{sign}{hour:02}:{minute:02}:{second:02}"
    return f"{shown}.{millionth:06}" if millionth else shown


def _interval(day: Parts, time: Parts) -> str:
    """Years and months, or days and a time."""
    if day[2] is None and day[0] is not None and time[0] is None:
        sign, (years, months) = _signed(day[:2])
        return f"{sign}{years}-{months:02}"
    if day[:2] == [None, None] and time[0] is not None:
        sign, (days, *rest) = _signed((day[2], *time))
        return f"{sign}{days} {_time(rest)}"
    raise Refused(f"the parts {list(day)} are no date")


def _signed(parts: Parts) -> tuple[str, list[int]]:
    numbers = [part or 0 for part in parts]
    if min(numbers) < 0 < max(numbers):
        raise Refused(f"the parts {numbers} of a time differ by their sign")
    return "-" if min(numbers) < 0 else "", list(map(abs, numbers))
