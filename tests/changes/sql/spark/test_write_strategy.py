"""Which way a batch is written: the cheapest of those that are right for it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from changes.sql.spark.write_strategy import ROWS_A_TASK, Facts, Way, choose, tasks_for

WHY = "some reason"


@pytest.mark.parametrize(
    ("facts", "way"),
    [
        (Facts(known_new=True), Way.APPEND),
        (Facts(known_new=True, partial=WHY), Way.INSERT),
        (Facts(known_new=True, special=WHY), Way.INSERT),
        (Facts(known_new=False, stored=24_000_000, rows=200_000, cores=2), Way.VECTOR),
        (Facts(known_new=False, stored=1_000_000_000, rows=50_000, cores=2), Way.VECTOR),
        (Facts(known_new=False, stored=1_000_000_000, rows=50_000, cores=16), Way.REPLACE),
        (Facts(known_new=False, stored=20_000_000, rows=50_000, cores=64), Way.VECTOR),
        (Facts(known_new=False, stored=80_000_000, rows=50_000, cores=64), Way.REPLACE),
        (Facts(known_new=False, stored=80_000_000, rows=2_000_000, cores=64), Way.JOBS),
        (Facts(known_new=False, rows=5_000_000, cores=16), Way.JOBS),
        (Facts(known_new=True, rows=5_000_000, cores=2), Way.APPEND),
        (Facts(known_new=True, rows=500_000, cores=64), Way.APPEND),
        (Facts(known_new=True, rows=5_000_000, cores=16), Way.INSERT),
        (Facts(known_new=False), Way.REPLACE),
        (Facts(known_new=False, partial=WHY, stored=1), Way.MERGE),
        (Facts(known_new=False, special=WHY, stored=1), Way.MERGE),
    ],
)
def test_the_cheapest_way_that_is_right(facts: Facts, way: Way) -> None:
    """Only what a file of ours can't say is left to a statement on whole rows."""
    assert choose(facts) is way


@given(st.integers(0, 10**10), st.integers(0, 10**8), st.integers(1, 1024))
def test_more_of_anything_never_brings_work_back(stored: int, rows: int, cores: int) -> None:
    """What the cluster does with some cores it does with more; and what is small stays ours."""
    facts = Facts(known_new=False, stored=stored, rows=rows, cores=cores)
    if choose(facts) is not Way.VECTOR:
        assert choose(replace(facts, cores=2 * cores)) is not Way.VECTOR
    if stored < 1_000_000 and rows < 50_000:
        assert choose(facts) is Way.VECTOR


def test_a_batch_is_shared_by_groups_of_rows() -> None:
    """No more tasks than it has groups, nor than there are cores."""
    assert [tasks_for(rows, 4) for rows in (0, ROWS_A_TASK - 1, ROWS_A_TASK, 10**9)] == [1, 1, 2, 4]


def test_cores_that_a_batch_can_not_use_do_not_count() -> None:
    """The rows of a batch of two groups are two tasks' work, on however large a cluster."""
    facts = Facts(known_new=True, rows=800_000, cores=1000)
    assert choose(facts) is Way.APPEND
    assert choose(replace(facts, rows=2_000_000)) is Way.INSERT
