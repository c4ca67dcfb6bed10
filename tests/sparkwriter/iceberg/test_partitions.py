"""Partitions of rows: each value is that of pyiceberg, another reader and writer of the format."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg import transforms, types

from changes.routes.shaping.layout import Transform, transform_of
from sparkwriter.iceberg.partitions import said, split, transformed

TIMES = st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31))
VALUES: dict[str, tuple[pa.DataType, types.IcebergType, st.SearchStrategy[Any]]] = {
    "int": (pa.int32(), types.IntegerType(), st.integers(-(2**31), 2**31 - 1)),
    "long": (pa.int64(), types.LongType(), st.integers(-(2**63), 2**63 - 1)),
    "string": (pa.string(), types.StringType(), st.text(max_size=12)),
    "binary": (pa.binary(), types.BinaryType(), st.binary(max_size=12)),
    "date": (pa.date32(), types.DateType(), st.dates()),
    "time": (pa.timestamp("us"), types.TimestampType(), TIMES),
    "utc": (pa.timestamp("us", "UTC"), types.TimestamptzType(), TIMES),
    "decimal": (
        pa.decimal128(38, 4),
        types.DecimalType(38, 4),
        st.decimals(-(10**33), 10**33, places=4, allow_nan=False),
    ),
}
TEXTS = ("c", "years(c)", "months(c)", "days(c)", "hours(c)", "bucket(7, c)", "truncate(10, c)")


def theirs(part: Transform) -> transforms.Transform[Any, Any]:
    return transforms.parse_transform(part.iceberg)


def internal(value: Any) -> Any:
    """As pyiceberg has values inside: times as numbers since 1970."""
    if isinstance(value, datetime):
        delta = value.replace(tzinfo=None) - datetime(1970, 1, 1)
        return (delta.days * 86400 + delta.seconds) * 1_000_000 + delta.microseconds
    return (value - date(1970, 1, 1)).days if isinstance(value, date) else value


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("name", VALUES)
@settings(max_examples=25)
@given(data=st.data())
def test_values_are_those_of_another_implementation(text: str, name: str, data: Any) -> None:
    """Of every type that a transform fits, years before 1970 and nulls included."""
    kind, iceberg, drawn = VALUES[name]
    part = transform_of(text)
    if part.problem(kind) is not None:
        assert not theirs(part).can_transform(iceberg)
        return
    values = data.draw(st.lists(st.none() | drawn, max_size=20))
    apply = theirs(part).transform(iceberg)
    expected = [None if value is None else apply(internal(value)) for value in values]
    if part.kind == "truncate" and name in ("int", "long"):
        bits = 32 if name == "int" else 64  # Iceberg's Java wraps; Python has no end
        expected = [
            v if v is None else (v + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1) for v in expected
        ]
    typed = [v.replace(tzinfo=UTC) if name == "utc" and v is not None else v for v in values]
    found = transformed(part, pa.array(typed, kind)).to_pylist()
    assert [internal(value) for value in found] == expected


def test_rows_are_split_by_all_parts() -> None:
    """Null is a partition of its own, and no row is lost or in two."""
    rows = pa.record_batch(
        {
            "s": pa.array(["a/b", None, "a/b", "", "a/b"]),
            "n": pa.array([1, 1, None, 25, 9], pa.int32()),
        }
    )
    parts = [transform_of("s"), transform_of("truncate(10, n)")]
    found = {values: part.to_pylist() for values, part in split(rows, parts)}
    assert found == {
        ("a/b", 0): [{"s": "a/b", "n": 1}, {"s": "a/b", "n": 9}],
        (None, 0): [{"s": None, "n": 1}],
        ("a/b", None): [{"s": "a/b", "n": None}],
        ("", 20): [{"s": "", "n": 25}],
    }


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (pa.scalar(None, pa.string()), None),
        (pa.scalar("a/b=c", pa.string()), "a/b=c"),
        (pa.scalar(b"\xab\x01", pa.binary()), "AB01"),
        (pa.scalar(Decimal("-1.50"), pa.decimal128(9, 2)), "-1.50"),
        (pa.scalar(-1, pa.date32()), "1969-12-31"),
        (pa.scalar(-1, pa.timestamp("us")), "1969-12-31T23:59:59.999999"),
        (pa.scalar(-1, pa.timestamp("us", "UTC")), "1969-12-31T23:59:59.999999+00:00"),
    ],
)
def test_values_as_icebergs_json_has_them(value: pa.Scalar, text: Any) -> None:
    assert said(value) == text


@pytest.mark.parametrize(
    "text", ["", "days()", "day(c)", "bucket(c)", "bucket(0, c)", "truncate(-1, c)", "years(1, c)"]
)
def test_what_is_no_transform(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        transform_of(text)
