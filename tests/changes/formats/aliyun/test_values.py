"""Alibaba DTS's values: random ones come back, and a column's type is never guessed from one."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.changes.formats.aliyun.cases import VALUES, value
from tests.changes.formats.aliyun.messages import date_time, integer, record, text
from tests.changes.formats.json_messages import decode, rows

AVRO = "aliyun-dts-avro"


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


@pytest.mark.parametrize("number", sorted({number for number, _, _ in VALUES}))
def test_a_column_has_the_type_of_its_number(number: int) -> None:
    """Whatever its first value is, also a null."""
    firsts = ["NULL", *(first for each, first, _ in VALUES if each == number)]
    types = {decode(AVRO, value(number, each)).table["v"].type for each in firsts}
    assert len(types) == 1
