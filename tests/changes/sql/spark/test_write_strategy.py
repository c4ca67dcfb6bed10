"""Which way a batch is written: the cheapest of those that are right for it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from changes.sql.spark.write_strategy import ROWS_A_TASK, BatchFacts, WriteWay, choose, tasks_for

WHY = "some reason"


@pytest.mark.parametrize(
    ("facts", "way"),
    [
        (BatchFacts(known_new=True), WriteWay.APPEND),
        (BatchFacts(known_new=True, partial=WHY), WriteWay.INSERT),
        (BatchFacts(known_new=True, special=WHY), WriteWay.INSERT),
        (BatchFacts(known_new=False, stored=24_000_000, rows=200_000, cores=2), WriteWay.VECTOR),
        (BatchFacts(known_new=False, stored=1_000_000_000, rows=50_000, cores=2), WriteWay.VECTOR),
        (
            BatchFacts(known_new=False, stored=1_000_000_000, rows=50_000, cores=16),
            WriteWay.REPLACE,
        ),
        (BatchFacts(known_new=False, stored=20_000_000, rows=50_000, cores=64), WriteWay.VECTOR),
        (BatchFacts(known_new=False, stored=80_000_000, rows=50_000, cores=64), WriteWay.REPLACE),
        (BatchFacts(known_new=False, stored=80_000_000, rows=2_000_000, cores=64), WriteWay.JOBS),
        (BatchFacts(known_new=False, rows=5_000_000, cores=16), WriteWay.JOBS),
        (BatchFacts(known_new=True, rows=5_000_000, cores=2), WriteWay.APPEND),
        (BatchFacts(known_new=True, rows=500_000, cores=64), WriteWay.APPEND),
        (BatchFacts(known_new=True, rows=5_000_000, cores=16), WriteWay.INSERT),
        (BatchFacts(known_new=False), WriteWay.REPLACE),
        (BatchFacts(known_new=False, partial=WHY, stored=1), WriteWay.MERGE),
        (BatchFacts(known_new=False, special=WHY, stored=1), WriteWay.MERGE),
    ],
)
def test_the_cheapest_way_that_is_right(facts: BatchFacts, way: WriteWay) -> None:
    """Only what a file of ours can't say is left to a statement on whole rows."""
    assert choose(facts) is way


@given(st.integers(0, 10**10), st.integers(0, 10**8), st.integers(1, 1024))
def test_more_of_anything_never_brings_work_back(stored: int, rows: int, cores: int) -> None:
    """What the cluster does with some cores it does with more; and what is small stays ours."""
    facts = BatchFacts(known_new=False, stored=stored, rows=rows, cores=cores)
    if choose(facts) is not WriteWay.VECTOR:
        assert choose(replace(facts, cores=2 * cores)) is not WriteWay.VECTOR
    if stored < 1_000_000 and rows < 50_000:
        assert choose(facts) is WriteWay.VECTOR


def test_a_batch_is_shared_by_groups_of_rows() -> None:
    """No more tasks than it has groups, nor than there are cores."""
    assert [tasks_for(rows, 4) for rows in (0, ROWS_A_TASK - 1, ROWS_A_TASK, 10**9)] == [1, 1, 2, 4]


def test_cores_that_a_batch_can_not_use_do_not_count() -> None:
    """The rows of a batch of two groups are two tasks' work, on however large a cluster."""
    facts = BatchFacts(known_new=True, rows=800_000, cores=1000)
    assert choose(facts) is WriteWay.APPEND
    assert choose(replace(facts, rows=2_000_000)) is WriteWay.INSERT
