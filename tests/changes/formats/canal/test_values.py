"""Canal's text values become typed ones exactly, or not at all."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from changes.formats.canal.json import CanalJson
from changes.model.model import BadRecord, FormatOptions, Mode
from changes.model.records import Values
from tests.changes.formats.canal.messages import column, decode, message

LABELS_64 = ",".join(f"'m{n}'" for n in range(64))

ZERO_DATES = [
    ("date", "0000-00-00"),
    ("date", "2024-01-00"),
    ("date", "2024-00-10"),
    ("datetime", "0000-00-00 00:00:00"),
    ("datetime(6)", "0003-00-00 00:00:01.000001"),
    ("timestamp", "0000-00-00 00:00:00"),
]


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
        ("time", "838:59:59", "838:59:59"),
        ("time(3)", "-00:00:00.500", "-00:00:00.500000"),
        ("time(6)", "10:20:30.000000", "10:20:30"),
        ("time", "-00:00:00", "00:00:00"),
        ("time", "8:00:00.0", "08:00:00"),
        ("enum('a','b')", "2", "b"),
        ("enum('a','b')", "0", ""),
        ("enum('a','b')", "", ""),
        ("enum('a','b')", "b", "b"),
        ("enum('10','1')", "1", "10"),
        ("enum('10','1')", "10", "10"),
        ("enum", "b", "b"),
        ("set('a','b','c')", "5", "a,c"),
        ("set('a','b','c')", "0", ""),
        ("set('a','b','c')", "", ""),
        ("set('a','b','c')", "c,a", "c,a"),
        (f"set({LABELS_64})", "18446744073709551615", LABELS_64.replace("'", "")),
        (f"set({LABELS_64})", "9223372036854775808", "m63"),
        ("bit(1)", "1", True),
        ("bit(1)", "0", False),
        ("bit(8)", "255", 255),
        ("bit(63)", "9223372036854775807", 2**63 - 1),
        ("bit(64)", "18446744073709551615", Decimal(2**64 - 1)),
        ("year(4)", "0000", 0),
        ("year", "2155", 2155),
        ("blob", "a\u0000\u0080\u00ff", b"a\0\x80\xff"),
        ("binary(4)", "a", b"a"),
        ("varbinary(4)", "", b""),
        ("geometry", "\u0001\u0002", b"\1\2"),
        ("tinyint(1)", "1", 1),
        ("json", '{"a": 1}', '{"a": 1}'),
        ("uuid", "123e4567-e89b-12d3-a456-426655440000", "123e4567-e89b-12d3-a456-426655440000"),
        ("inet4", "1.2.3.4", "1.2.3.4"),
        ("INET6", "::ffff:1.2.3.4", "::ffff:1.2.3.4"),
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
        ("bigint unsigned", "1e2"),
        ("bigint unsigned", "-1"),
        ("bigint unsigned", "18446744073709551616"),
        ("int(10) unsigned", "-1"),
        ("tinyint unsigned", "-1"),
        ("bit(8)", "-1"),
        ("bit(64)", "-1"),
        ("decimal(10,2)", "1.239"),
        ("decimal(10,2)", "123456789.00"),
        ("decimal(10,2)", "abc"),
        ("float", "1e39"),
        ("double", "nan"),
        ("double", "inf"),
        ("double", "1,5"),
        ("bit(1)", "2"),
        ("bit(8)", "b"),
        ("bit(64)", "18446744073709551616000"),
        ("year", "two"),
        ("enum('a','b')", "3"),
        ("enum('a','b')", "c"),
        ("enum('a','b')", "9" * 5000),
        ("enum", "1"),
        ("set('a','b')", "4"),
        ("set('a','b')", "a,c"),
        ("set", "1"),
        ("blob", "\u0100"),
        ("time", "839:00:00"),
        ("time", "10:60:00"),
        ("time", "1:2"),
        ("time", "00:00:00.1234567"),
        ("date", "2023-02-29"),
        ("date", "0000-01-01"),
        ("datetime", "2024-01-01 24:00:00"),
        ("datetime(6)", "2024-01-01 00:00:00.1234567"),
        ("datetime", "2024-01-01T00:00:00+02:00"),
        # What Canal makes of their bytes.
        ("UUID", "\x12>Eg\ufffd\x12\u04e4VBfUD\0\0"),
        ("inet4", "\1\2\3\4"),
        ("inet6", "\0" * 15 + "\1"),
    ],
)
def test_misfits(kind: str, text: str) -> None:
    """What does not fit its type exactly is refused by table, column, value and type."""
    with pytest.raises(BadRecord) as refused:
        column(kind, None, text)
    assert refused.value.index == 0
    assert refused.value.reason.startswith("shop.orders: v: ")
    assert repr(text[:60]) in refused.value.reason
    assert refused.value.reason.endswith(kind)


@pytest.mark.parametrize(("kind", "text"), ZERO_DATES)
def test_zero_dates_are_null_and_counted(kind: str, text: str) -> None:
    """A day that no lake has is null unless configured otherwise, and it is told how many."""
    rows = [{"id": str(place), "v": v} for place, v in enumerate((text, "2024-01-02", None, text))]
    changes = decode(message(data=rows, types={"id": "int", "v": kind}))
    assert [value is None for value in changes.table["v"].to_pylist()] == [True, False, True, True]
    assert changes.nulled == 2


@pytest.mark.parametrize(("kind", "text"), ZERO_DATES)
def test_zero_dates_can_be_errors(kind: str, text: str) -> None:
    """With zero_dates = "error" such a value stops the pipeline as any other misfit does."""
    rows = [{"id": "1", "v": "2024-01-02"}, {"id": "2", "v": text}]
    value = message(data=rows, types={"id": "int", "v": kind})
    with pytest.raises(BadRecord, match=f"v: '{text}' is not a {kind.split('(')[0]}"):
        decode(value, zero_dates="error")


def test_zero_date_in_a_key_is_an_error() -> None:
    """Keys that became null would all be one key."""
    types = {"day": "date", "v": "int"}
    value = message(data=[{"day": "0000-00-00", "v": "1"}], types=types, keys=["day"])
    with pytest.raises(BadRecord, match="day: '0000-00-00' is not a date"):
        decode(value)


def test_zero_dates_hide_no_other_misfit() -> None:
    """A day that does not exist stays an error beside zero dates."""
    with pytest.raises(BadRecord, match="2023-02-29"):
        column("date", "0000-00-00", "2023-02-29")


def test_types_drift_by_row_no_matter() -> None:
    """Canal moves sqlType up for single values; only mysqlType counts."""
    types = {"id": "int", "v": "bigint unsigned"}
    values = [
        message(data=[{"id": "1", "v": "1"}], types=types, sqlType={"id": 4, "v": -5}),
        message(data=[{"id": "2", "v": str(2**64 - 1)}], types=types, sqlType={"id": 4, "v": 3}),
    ]
    assert decode(*values).table["v"].to_pylist() == [Decimal(1), Decimal(2**64 - 1)]


def test_labels_by_the_message_they_came_with() -> None:
    """An enumeration that is defined anew gives old numbers their old labels, back and forth."""
    definitions = ["enum('a','b')", "enum('b','a')", "enum('a','b')", "enum('a','b','c')"]
    definitions += ["enum('a','b')", "varchar(9)", "enum('x','b')"]
    values = [
        message(data=[{"id": str(place), "v": "2"}], types={"id": "int", "v": text})
        for place, text in enumerate(definitions)
    ]
    assert decode(*values).table["v"].to_pylist() == ["b", "a", "b", "b", "b", "2", "b"]


def test_misfit_after_a_new_definition() -> None:
    """The record named is right where the rows are read in several ways."""
    values = [
        message(data=[{"id": "1", "v": "1"}], types={"id": "int", "v": "enum('a')"}),
        message(data=[{"id": "2", "v": "1"}], types={"id": "int", "v": "enum('b','a')"}),
        message(data=[{"id": "3", "v": "3"}], types={"id": "int", "v": "enum('b','a')"}),
    ]
    with pytest.raises(BadRecord, match=r"v: '3' is not an enum\('b','a'\)") as refused:
        decode(*values)
    assert refused.value.index == 2


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


@pytest.mark.parametrize("word", ["decimal", "DECIMAL unsigned", "numeric"])
def test_a_decimal_without_digits_has_those_that_are_declared(word: str) -> None:
    """Flink's and other writers leave the digits out; what MySQL means by that is (10, 0)."""
    types = {"id": "int", "p": word}
    value = message(data=[{"id": "1", "p": "1.5"}], types=types)
    declared = (("p", "decimal(10,2)"),)
    decoder = CanalJson(FormatOptions()).table_decoder(Mode.UPSERT, None, declared)
    changes = decoder.decode(7, range(1), Values.of([value]))
    assert changes is not None
    assert changes.table["p"].to_pylist() == [Decimal("1.50")]
    three = message(data=[{"id": "1", "p": "1.567"}], types=types)
    with pytest.raises(BadRecord, match=r"p: '1\.567' is not a decimal\(10,2\)$"):
        decoder.decode(7, range(1), Values.of([three]))
    with pytest.raises(
        BadRecord, match=r"is not a decimal\(10,0\), .* declare the column in types"
    ):
        decode(value)


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
