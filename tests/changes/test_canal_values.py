"""Canal's text values become typed ones exactly, or not at all."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from changes.model import BadRecord
from tests.changes.canal_messages import column, decode, message


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("int(11)", "-2147483648", -(2**31)),
        ("int(5) unsigned zerofill", "00042", 42),
        ("int unsigned", "4294967295", 2**32 - 1),
        ("bigint", "-9223372036854775808", -(2**63)),
        ("bigint unsigned", "18446744073709551615", Decimal(2**64 - 1)),
        ("decimal(10,2)", "12345678.91", Decimal("12345678.91")),
        ("decimal(10,2)", "1.5", Decimal("1.50")),
        ("decimal(38,0)", "9" * 38, Decimal("9" * 38)),
        ("decimal(65,30)", "1." + "1" * 30, "1." + "1" * 30),
        ("double", "0.1", 0.1),
        ("float", "3.14", 3.140000104904175),
        ("varchar(5)", "", ""),
        ("varchar(5)", "null", "null"),
        ("text", "a\u0000\U0001f600\n", "a\u0000\U0001f600\n"),
        ("date", "2024-02-29", date(2024, 2, 29)),
        ("datetime", "2024-02-29 23:59:59", datetime(2024, 2, 29, 23, 59, 59)),
        ("datetime", "2024-02-29 23:59:59.0", datetime(2024, 2, 29, 23, 59, 59)),
        ("datetime(6)", "1000-01-01 00:00:00.000001", datetime(1000, 1, 1, microsecond=1)),
        ("datetime(2)", "2024-01-01 00:00:00.12", datetime(2024, 1, 1, microsecond=120_000)),
        ("timestamp", "2024-01-01 00:00:00", datetime(2024, 1, 1, tzinfo=UTC)),
        ("time", "-838:59:59", "-838:59:59"),
        ("enum('a','b')", "2", "2"),
        ("json", '{"a": 1}', '{"a": 1}'),
        ("int(11)", None, None),
        ("decimal(4,2)", None, None),
        ("timestamp", None, None),
    ],
)
def test_values(kind: str, text: str | None, expected: object) -> None:
    """A value is what the source shows."""
    assert column(kind, text).to_pylist() == [expected]


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("int(11)", "A101"),
        ("int(11)", ""),
        ("int(11)", "1.0"),
        ("int(11)", " 1"),
        ("int(11)", "0xFFFFFFFF"),
        ("int(11)", "2147483648"),
        ("bigint", "9223372036854775808"),
        ("bigint unsigned", "100000000000000000000"),
        ("bigint unsigned", "1.5"),
        ("decimal(10,2)", "1.239"),
        ("decimal(10,2)", "123456789.00"),
        ("decimal(10,2)", "abc"),
        ("float", "1e39"),
        ("double", "nan"),
        ("double", "inf"),
        ("double", "1,5"),
        ("date", "0000-00-00"),
        ("date", "2023-02-29"),
        ("date", "0000-01-01"),
        ("date", "2024-01-00"),
        ("datetime", "0000-00-00 00:00:00"),
        ("datetime", "2024-01-01 24:00:00"),
        ("datetime(6)", "2024-01-01 00:00:00.1234567"),
        ("datetime", "2024-01-01T00:00:00+02:00"),
        ("timestamp", "0000-00-00 00:00:00"),
    ],
)
def test_misfits(kind: str, text: str) -> None:
    """What does not fit its type exactly is refused by table, column, value and type."""
    with pytest.raises(BadRecord) as refused:
        column(kind, None, text)
    assert refused.value.index == 0
    assert refused.value.reason.startswith("shop.orders: v: ")
    assert repr(text) in refused.value.reason
    assert refused.value.reason.endswith(kind)


def test_first_misfit_of_all_columns_counts() -> None:
    """The record named is the first bad one, whichever of its columns was converted first."""
    types = {"id": "int", "a": "int", "b": "int"}
    rows = [{"id": str(n), "a": str(n), "b": str(n)} for n in range(50)]
    rows[40]["a"] = "late"
    rows[20]["b"] = "early"
    values = [message(data=[row], types=types) for row in rows]
    with pytest.raises(BadRecord, match="b: 'early' is not an int") as refused:
        decode(*values)
    assert refused.value.index == 20


def test_misfit_before_a_broken_message_counts() -> None:
    """A value that does not fit is told before a later message that can't be read at all."""
    bad_value = message(data=[{"id": "x", "name": "a", "price": "1"}])
    with pytest.raises(BadRecord, match="'x' is not an int") as refused:
        decode(message(), bad_value, message(data=[None]))
    assert refused.value.index == 1


def test_long_values_are_cut_in_errors() -> None:
    """An error stays one readable line."""
    with pytest.raises(BadRecord) as refused:
        column("int", "x" * 100_000)
    assert len(refused.value.reason) < 200


def test_timestamps_are_read_in_the_zone() -> None:
    """TIMESTAMP text is a reading of the configured zone's clocks."""
    values = column("timestamp(3)", "2024-01-01 08:00:00.5", time_zone="Asia/Shanghai")
    assert values.to_pylist() == [datetime(2024, 1, 1, microsecond=500_000, tzinfo=UTC)]
    assert values.type.tz == "UTC"


def test_datetimes_know_no_zone() -> None:
    """DATETIME is the same reading in any zone."""
    values = column("datetime", "2024-01-01 08:00:00", time_zone="Asia/Shanghai")
    assert values.to_pylist() == [datetime(2024, 1, 1, 8)]


def test_reading_that_occurs_twice_is_the_first() -> None:
    """When the clocks go back, the earlier of both points in time is taken."""
    values = column("timestamp", "2024-10-27 02:30:00", time_zone="Europe/Berlin")
    assert values.to_pylist() == [datetime(2024, 10, 27, 0, 30, tzinfo=UTC)]


def test_reading_that_does_not_occur_is_refused() -> None:
    """When the clocks go forward, no point in time has the readings between."""
    with pytest.raises(BadRecord, match="2024-03-31 02:30:00"):
        column("timestamp", "2024-03-31 02:30:00", time_zone="Europe/Berlin")
