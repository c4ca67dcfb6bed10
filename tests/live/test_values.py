"""One text per value, whoever shows it."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest

from tests.live.values import KINDS, from_lake, from_source

EQUAL = [
    ("number", "0.10", Decimal("0.1000")),
    ("number", "-0.00", Decimal("0")),
    ("number", "18446744073709551615", Decimal("18446744073709551615")),
    ("number", "1", True),
    ("number", "12", "12.0"),
    ("double", "5e-324", 5e-324),
    ("double", "-0", 0.0),
    ("single", "0.10000000149011612", 0.1),
    ("text", "it's\n", "it's\n"),
    ("bytes", "00FF", b"\x00\xff"),
    ("padded", "0100", b"\x01"),
    ("time", "-838:59:58.500000", "-838:59:58.5"),
    ("time", "10:00:00", "10:00:00"),
    ("moment", "2024-01-02 03:04:05", dt.datetime(2024, 1, 2, 3, 4, 5)),
    ("moment", "2024-01-02 03:04:05.1", "2024-01-02 03:04:05.100000Z"),
    ("moment", "2024-01-02 03:04:05.12", dt.datetime(2024, 1, 2, 3, 4, 5, 120000, dt.UTC)),
    ("bytes", "00FF", "AP8="),
    ("set", "x,z", '["x","z"]'),
    ("date", "0999-01-02", dt.date(999, 1, 2)),
]
DIFFERENT = [
    ("number", "1", Decimal("1.01")),
    ("number", "1", "one"),
    ("double", "0.1", 0.10000000149011612),
    ("text", "a", "A"),
    ("text", "a ", "a"),
    ("bytes", "0100", b"\x01"),
    ("time", "00:00:01", "-00:00:01"),
    ("moment", "2024-01-02 03:04:05", dt.datetime(2024, 1, 2, 3, 4, 6)),
    ("moment", "2024-01-02 03:04:05", dt.date(2024, 1, 2)),
    ("text", "", None),
    ("bytes", "00FF", "00FF"),
]


@pytest.mark.parametrize(("kind", "printed", "stored"), EQUAL)
def test_the_lake_has_the_sources_value(kind: str, printed: str, stored: object) -> None:
    """Forms that the docs promise are equal."""
    assert from_lake(kind, stored) == from_source(kind, printed)


@pytest.mark.parametrize(("kind", "printed", "stored"), DIFFERENT)
def test_the_lake_has_another_value(kind: str, printed: str, stored: object) -> None:
    """Anything else is a difference."""
    assert from_lake(kind, stored) != from_source(kind, printed)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_null_is_null_and_no_value(kind: str) -> None:
    """A null is equal to a null alone."""
    assert from_source(kind, None) is None
    assert from_lake(kind, None) is None
    assert from_lake(kind, "0") is not None
