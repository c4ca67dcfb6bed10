"""What the rows of a query for counts say."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from daemon.cli.counts.counts_query import QueryCounts
from daemon.cli.counts.expected import NoCount
from daemon.cli.counts.tally import TooMany
from offsets.counts import RowCounts
from tests.daemon.cli.counts.debezium_log import MINUTE, RANGE


def test_rows_add_up() -> None:
    """A row of no change says that the table is counted. Databases give decimals and bytes."""
    counts = QueryCounts(RANGE)
    for row in (
        ("shop.t", MINUTE, "insert", 2), ("shop.t", Decimal(MINUTE), b"insert", Decimal(3)),
        (b"shop.t", float(MINUTE), "delete", 1), ("shop.u", MINUTE, "update", 0),
    ):  # fmt: skip
        counts.take(row)
    assert counts.expected("query").tables == {
        "shop.t": {MINUTE: RowCounts(5, 0, 1)}, "shop.u": {MINUTE: RowCounts()},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("row", "why"),
    [
        (("shop.t", MINUTE, "insert"), "it has 3 columns"),
        ((None, MINUTE, "insert", 1), "None is no table's name"),
        (("shop.t", None, "insert", 1), "None is no minute since 1970"),
        (("shop.t", MINUTE, "I", 1), "'I' is no operation"),
        (("shop.t", MINUTE, "insert", None), "None is no number of changes"),
        (("shop.t", MINUTE * 60, "insert", 1), "is not from 29000000 to before its end"),
    ],
)
def test_a_row_that_says_nothing_is_named(row: Any, why: str) -> None:
    with pytest.raises(NoCount, match=why):
        QueryCounts(RANGE).take(row)


def test_more_minutes_than_are_kept_are_refused() -> None:
    counts = QueryCounts(RANGE, most=1)
    counts.take(("shop.t", MINUTE, "insert", 1))
    with pytest.raises(TooMany, match="more than 1 minute of"):
        counts.take(("shop.t", MINUTE + 1, "insert", 1))
