"""Alibaba DTS's values: each kind by its column's type number, and what can't be one."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from changes.model.model import BadRecord
from tests.changes.formats.avro_records import date_time, integer, record, text
from tests.changes.formats.json_messages import decode, rows

AVRO = "aliyun-dts-avro"


def column(number: int, *values: Any, source: str = "MySQL") -> pa.ChunkedArray:
    """One column's values, each a record's, in the lake."""
    fields = [("id", 253), ("v", number)]
    told = [
        record(after=[text(str(n)), value], fields=fields, source=source)
        for n, value in enumerate(values)
    ]
    return decode(AVRO, *told).table["v"]


@pytest.mark.parametrize(
    ("number", "value", "kept"),
    [
        (1, integer(-128), -128),
        (3, integer(2**32 - 1), 2**32 - 1),
        (8, integer(-(2**63)), -(2**63)),
        (246, ("Decimal", "-12345678901234567890.1230", 30, 4), "-12345678901234567890.1230"),
        (4, ("Float", 3.140000104904175, 12, 0), 3.140000104904175),
        (5, ("Float", 0.1, 22, 0), 0.1),
        (10, date_time(2020, 1, 2), date(2020, 1, 2)),
        (12, date_time(2020, 1, 2, 3, 4, 5, 6), datetime(2020, 1, 2, 3, 4, 5, 6)),
        (12, date_time(2020, 1, 2, 3, 4, 5), datetime(2020, 1, 2, 3, 4, 5)),
        (11, date_time(None, None, None, 838, 59, 59), "838:59:59"),
        (11, date_time(None, None, None, 0, 0, -1, -500000), "-00:00:01.500000"),
        (13, date_time(1999), 1999),
        (7, ("Timestamp", 1700000000, 123456), datetime(2023, 11, 14, 22, 13, 20, 123456, UTC)),
        (7, ("Timestamp", -1, 0), datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC)),
        (253, text("é", "latin1", "latin-1"), "é"),
        (253, ("Character", "latin1", b"\x80\x81"), "€\x81"),
        (253, text("圖形碼", "big5", "big5"), "圖形碼"),
        (253, text("乪", "gbk", "gbk"), "乪"),
        (253, text("∆", "ucs2", "utf-16-be"), "∆"),
        (254, ("Character", "binary", b"\x00\xff"), "AP8="),
        (252, ("BinaryObject", "blob", b"\x00\xff"), "AP8="),
        (255, ("BinaryGeometry", "point", b"\x01"), "AQ=="),
        (255, ("TextGeometry", "point", "POINT (1 2)"), "POINT (1 2)"),
        (247, ("TextObject", "enum", "b"), "b"),
        (245, ("TextObject", "json", '{"a": 1.50}'), '{"a": 1.50}'),
        (16, integer(5), 5),
    ],
)
def test_values(number: int, value: Any, kept: object) -> None:
    """A value of each kind, as MySQL's number of its column's type says; nulls beside it."""
    assert column(number, "NULL", value, None).to_pylist() == [None, kept, None]
    assert column(number, value).type == column(number, "NULL").type


@pytest.mark.parametrize(
    ("source", "value", "kept"),
    [
        ("Oracle", ("Decimal", "1.50", 10, 2), "1.50"),
        ("Oracle", date_time(2020, 1, 2, 3, 4, 5), "2020-01-02 03:04:05"),
        ("PostgreSQL", ("TimestampWithTimeZone", (2020, 1, 2, 3, 4, 5, 6), "+08:00"),
         "2020-01-02 03:04:05.000006 +08:00"),
        ("PostgreSQL", date_time(2020, 1, 2), "2020-01-02"),
        ("PostgreSQL", date_time(None, None, None, 1, 2, 3), "01:02:03"),
        ("PostgreSQL", integer(7), "7"),
    ],
)  # fmt: skip
def test_values_of_other_sources(source: str, value: Any, kept: str) -> None:
    """Their type numbers are not known: every column is text."""
    assert column(3, "NULL", value, source=source).to_pylist() == [None, kept]


@pytest.mark.parametrize(
    ("number", "value", "said"),
    [
        (8, integer(2**63), r"v: '9223372036854775808' is not a bigint"),
        (3, integer("1x"), r"v: '1x' is not a bigint"),
        (5, ("Float", float("nan"), 0, 0), r"v: 'nan' is not a double"),
        (12, date_time(2020, 2, 30, 0, 0, 0), r"v: '2020-02-30 00:00:00' is not a datetime"),
        (11, date_time(None, None, None, 1, -2, 3), r"v: the parts .* differ by their sign"),
        (7, ("Timestamp", 2**60, 0), r"v: 1152921504606846976 seconds are no time"),
        (253, ("Character", "utf8", b"\xff"), r"v: b'\\xff' is not text in utf8"),
        (253, ("Character", "klingon", b"a"), r"v: the character set 'klingon' is not known"),
    ],
)
def test_values_that_do_not_fit(number: int, value: Any, said: str) -> None:
    """Column, value and what was expected are named."""
    with pytest.raises(BadRecord, match=r"shop\.orders: " + said) as error:
        column(number, "NULL", value)
    assert error.value.index == 1


def test_zero_dates() -> None:
    """They are null by default, as with every format."""
    assert column(12, date_time(0, 0, 0, 0, 0, 0)).to_pylist() == [None]


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(
            st.integers(-(2**63), 2**63 - 1),
            st.text(st.characters(exclude_categories=["Cs"]), max_size=9),
            st.decimals(allow_nan=False, allow_infinity=False, places=3),
            st.datetimes(datetime(1000, 1, 1), datetime(9999, 12, 31)),
            st.floats(allow_nan=False, allow_infinity=False),
        ),
        min_size=1,
        max_size=6,
    )
)
def test_values_come_back(values: list[tuple[Any, ...]]) -> None:
    """Every value of every kind is equal after the way through a record."""
    fields = [("id", 8), ("b", 8), ("s", 253), ("d", 246), ("t", 12), ("f", 5)]
    told = []
    for n, (big, words, number, when, real) in enumerate(values):
        parts = (when.year, when.month, when.day, when.hour, when.minute, when.second)
        row = [integer(n), integer(big), text(words), ("Decimal", f"{number:f}", 30, 3)]
        row += [date_time(*parts, when.microsecond), ("Float", real, 0, 0)]
        told.append(record("INSERT", row, fields=fields, born=n if n % 2 else None))
    found = [tuple(row[name] for name, _ in fields[1:]) for row in rows(AVRO, *told)]
    assert found == [(big, words, f"{d:f}", when, f) for big, words, d, when, f in values]
