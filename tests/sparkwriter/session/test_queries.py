"""Checksums in Spark's SQL: the numbers that Python gets for the same texts."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence

import pytest
from pyspark.sql import SparkSession

from changes.sql.spark import checksums
from changes.sql.spark.checksums import CELLS, Grid, Interval, Lake, TextColumn, key_text
from sparkwriter.session.queries import SparkQueries
from sparkwriter.session.requests import NotWanted

pytestmark = pytest.mark.integration

Row = tuple[int, str | None, str | None]

ROWS: list[Row] = [
    (-(1 << 63), "smallest", ""),
    (-7, None, None),
    (0, "", "n,"),
    (1, "a", "b"),
    (2, "b", "a"),
    (3, "ab", ""),
    (4, "", "ab"),
    (5, "blank ", "1:x"),
    (6, "blank", "😀é\u0000"),
    (1000, None, ""),
    ((1 << 63) - 1, "largest", None),
]
LAKE = Lake(
    "rows_of_test",
    (
        TextColumn("CAST(`id` AS STRING)", False),
        TextColumn("`a`", True),
        TextColumn("`b`", True),
    ),
    (TextColumn("CAST(`id` AS STRING)", False),),
    "CAST(`id` AS BIGINT)",
)


GRIDS = [
    Grid(-8, 1),
    Grid(0, 1),
    Grid.between(-(1 << 63), (1 << 63) - 1),
    Grid.between(0, (1 << 63) - 1),
    Grid.between(-(1 << 62), 1 << 61),
]


def text_of(row: Row) -> str:
    key, *rest = row
    fields = ("n," if text is None else f"{len(text)}:{text}" for text in rest)
    return f"{key}," + "".join(fields)


def hashed(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def expected(intervals: Sequence[Interval], digits: int) -> dict[tuple[int, str], tuple[int, int]]:
    rows: Counter[tuple[int, str]] = Counter()
    totals: Counter[tuple[int, str]] = Counter()
    for row in ROWS:
        for place, (low, high) in enumerate(intervals):
            if (low is None or row[0] > low) and (high is None or row[0] <= high):
                group = (place, hashed(key_text((str(row[0]),), [False]))[:digits])
                rows[group] += 1
                totals[group] += int(hashed(text_of(row))[:16], 16)
    return {group: (number, totals[group]) for group, number in rows.items()}


@pytest.fixture(scope="module")
def queries(spark: SparkSession) -> SparkQueries:
    """With the rows as a view."""
    found = SparkQueries(spark, lambda: False)
    frame = found._spark.createDataFrame(ROWS, "id BIGINT, a STRING, b STRING")
    frame.createOrReplaceTempView("rows_of_test")
    return found


@pytest.mark.parametrize("digits", [0, 2])
@pytest.mark.parametrize("grid", GRIDS)
def test_sums_by_interval_and_digits(queries: SparkQueries, grid: Grid, digits: int) -> None:
    """Each row is in the interval of its number, the ends of BIGINT included."""
    edges = [grid.edge(cell) for cell in (0, 1, 2, 5, 1000, CELLS)]
    intervals = [Interval(a, b) for a, b in zip([None, *edges], [*edges, None], strict=True)]
    asked = checksums.sums(LAKE._replace(grid=grid), intervals, digits)
    found = {
        (slot, prefix): (rows, low + (high << 32))
        for slot, prefix, rows, low, high in queries.ask(asked, "sums")
    }
    assert found == expected(intervals, digits)


def test_only_the_rows_of_the_wanted_intervals(queries: SparkQueries) -> None:
    """Those between and beyond them are left out."""
    intervals = [Interval(-8, 0), Interval(0, 1), Interval(3, 5)]
    lake = LAKE._replace(grid=Grid(-8, 1))
    found = queries.ask(checksums.sums(lake, intervals, 0), "sums")
    assert {slot: rows for slot, _, rows, _, _ in found} == {0: 2, 1: 1, 2: 2}


def test_hashes_of_groups(queries: SparkQueries) -> None:
    """Those of the wanted groups alone."""
    intervals = [Interval(None, 2), Interval(2, None)]
    key = hashed("3,")[:2]
    lake = LAKE._replace(grid=Grid(2, 1))
    found = queries.ask(checksums.hashes(lake, intervals, 2, [(1, key), (0, key)]), "hashes")
    row = next(row for row in ROWS if row[0] == 3)
    assert ("3", hashed(text_of(row))[:16]) in found
    assert len(found) < len(ROWS)


def test_rows_by_their_keys(queries: SparkQueries) -> None:
    """Those that are there, nulls apart from empty texts."""
    keys = [("-7",), ("0",), ("77",), (str((1 << 63) - 1),)]
    found = {row[0]: row[1:] for row in queries.ask(checksums.look_up(LAKE, keys), "rows")}
    assert found == {
        "-7": ("-7", None, None),
        "0": ("0", "", "n,"),
        str((1 << 63) - 1): (str((1 << 63) - 1), "largest", None),
    }


def test_keys_of_several_texts_are_not_confused(queries: SparkQueries) -> None:
    """('a', 'b1:c') and ('a1:b', 'c') are two keys."""
    lake = LAKE._replace(keys=(TextColumn("`a`", True), TextColumn("`b`", True)), number=None)
    found = queries.ask(checksums.look_up(lake, [("a", "b"), ("ab", "")]), "rows")
    assert sorted(row[2] for row in found) == ["1", "3"]
    assert key_text(("a", "b1:c"), [True, True]) != key_text(("a1:b", "c"), [True, True])


def test_a_query_that_is_not_wanted_any_more_is_cancelled(spark: SparkSession) -> None:
    """It ends with NotWanted, soon."""
    slow = SparkQueries(spark, lambda: True)
    sql = "SELECT count(*) FROM range(1000000000000) WHERE sha2(CAST(id AS STRING), 256) = ''"
    with pytest.raises(NotWanted):
        slow.ask(sql, "slow")


def test_a_failure_comes_to_the_caller(queries: SparkQueries) -> None:
    """On its own thread."""
    with pytest.raises(Exception, match="raised here"):
        queries.ask("SELECT raise_error('raised here')", "fails")
