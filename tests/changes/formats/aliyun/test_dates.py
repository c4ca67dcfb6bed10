"""Alibaba DTS's dates and times come in parts, any of which may be missing."""

from __future__ import annotations

import re
from datetime import date, datetime
from typing import Any

import pytest

from changes.model.model import OP, BadRecord
from tests.changes.formats.avro_records import date_time, integer, record, text
from tests.changes.formats.json_messages import rows

AVRO = "aliyun-dts-avro"


def value(number: int, given: Any, source: str = "MySQL") -> Any:
    """A value in the lake, of a column whose type has that number."""
    fields = [("id", 253), ("v", number)]
    (row,) = rows(AVRO, record(after=[text("1"), given], fields=fields, source=source))
    return row["v"]


@pytest.mark.parametrize(
    ("number", "given", "kept"),
    [
        (10, date_time(2020, 1, 2, 0, 0, 0, 0), date(2020, 1, 2)),
        (11, date_time(0, 0, 0, 3, 4, 5), "03:04:05"),
        (12, date_time(2020, 1, 2), datetime(2020, 1, 2)),
        (13, date_time(2020, 0, 0, 0, 0, 0), 2020),
        (13, integer(2020), 2020),
    ],
)
def test_parts_that_are_zero_add_nothing(number: int, given: Any, kept: object) -> None:
    """Some writers fill all parts in."""
    assert value(number, given) == kept


@pytest.mark.parametrize(
    ("number", "given", "said"),
    [
        (10, date_time(2020, 1, 2, 3, 4, 5), "'2020-01-02 03:04:05' is not a date"),
        (11, date_time(2020, 1, 2, 3, 4, 5), "'2020-01-02 03:04:05' is not a time"),
        (13, date_time(2020, 5), "'2020-05' is not a year"),
        (12, date_time(None, None, None, 1, 2, 3), "'01:02:03' is not a datetime"),
        (12, date_time(), "a date without any part"),
        (10, date_time(2020, None, 2), "the parts [2020, None, 2] are no date"),
        (11, date_time(None, None, None, None, 2, 3), "a date without any part"),
        (7, ("Timestamp", 1, 1234567), "1234567 millionths are more than a second"),
        (7, ("Timestamp", 1, -1), "-1 millionths are more than a second"),
    ],
)
def test_parts_that_do_not_fit(number: int, given: Any, said: str) -> None:
    """Nothing of a value is left out in silence, and nothing is made up."""
    with pytest.raises(BadRecord, match=re.escape(said)):
        value(number, given)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (date_time(5, 3), "5-03"),
        (date_time(-5, -3), "-5-03"),
        (date_time(0, -3), "-0-03"),
        (date_time(None, None, 5, 3, 4, 5, 6), "5 03:04:05.000006"),
        (date_time(None, None, -5, -3, -4, -5, -6), "-5 03:04:05.000006"),
        (date_time(None, None, 0, 0, 0, -5), "-0 00:00:05"),
        (date_time(-44, 3, 15), "-0044-03-15"),
    ],
)
def test_intervals_of_other_sources(given: Any, kept: str) -> None:
    """An interval has either years and months, or days and a time: as Oracle prints them."""
    assert value(3, given, source="Oracle") == kept


def test_an_empty_image_is_none() -> None:
    """Some writers put an empty list where a record has no such row."""
    told = record("DELETE", [], [text("1"), text("a")], [("id", 253), ("name", 253)])
    (row,) = rows(AVRO, told)
    assert (row[OP], row["id"]) == ("D", "1")
    with pytest.raises(BadRecord, match="without afterImages"):
        rows(AVRO, record("INSERT", []))
