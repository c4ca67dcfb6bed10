"""How many changes of each table a source says that it made, by minute. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from offsets.counts import RowCounts

OPERATIONS = ("insert", "update", "delete")
"""As ``RowCounts`` has them."""

MOST_COUNTS = 1_000_000
"""Numbers that are kept at a time: a hundred bytes each."""


class NoCount(Exception):
    """It is no count: one line."""


@dataclass(frozen=True, slots=True)
class ExpectedCounts:
    """``by``: who says it. ``tables``: by the source's name of each table its minutes of the range
    with changes; in minutes that are not there it made none. ``why``: by such a name why nothing
    is told of a table; ``why_all``: why nothing is told of any."""

    by: str
    tables: Mapping[str, Mapping[int, RowCounts]] = field(default_factory=dict)
    why: Mapping[str, str] = field(default_factory=dict)
    why_all: str = ""
    lacks: str = ""
    """What there is none of for a table that is in neither."""


def table_of(value: Any) -> str:
    """A table's name, as the source spells it. Raises NoCount."""
    if isinstance(value, bytes | bytearray):
        value = bytes(value).decode(errors="replace")
    if not isinstance(value, str) or not value:
        raise NoCount(f"{value!r} is no table's name, such as shop.orders")
    return value


def column_of(value: Any) -> int:
    """Which of ``OPERATIONS`` it is. Raises NoCount."""
    if isinstance(value, bytes | bytearray):
        value = bytes(value).decode(errors="replace")
    if value not in OPERATIONS:
        raise NoCount(f"{value!r} is no operation: {', '.join(OPERATIONS)}")
    return OPERATIONS.index(value)


def whole(value: Any, what: str) -> int:
    """A whole number that is not negative; databases give some as decimals. Raises NoCount."""
    try:
        number = int(value)
        if isinstance(value, bool | str | bytes) or number != value or number < 0:
            raise ValueError
    except (TypeError, ValueError, OverflowError) as error:
        raise NoCount(f"{value!r} is no {what}") from error
    return number
