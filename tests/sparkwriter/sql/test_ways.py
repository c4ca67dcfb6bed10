"""Which way a batch is written: the cheapest of those that are right for it."""

from __future__ import annotations

import pytest

from sparkwriter.sql.ways import SEEKABLE_ROWS, Facts, Way, choose

WHY = "some reason"


@pytest.mark.parametrize(
    ("facts", "way"),
    [
        (Facts(known_new=True), Way.APPEND),
        (Facts(known_new=True, partial=WHY), Way.INSERT),
        (Facts(known_new=True, special=WHY), Way.INSERT),
        (Facts(known_new=False, stored=SEEKABLE_ROWS), Way.VECTOR),
        (Facts(known_new=False, stored=SEEKABLE_ROWS + 1), Way.REPLACE),
        (Facts(known_new=False), Way.REPLACE),
        (Facts(known_new=False, partial=WHY, stored=1), Way.MERGE),
        (Facts(known_new=False, special=WHY, stored=1), Way.MERGE),
    ],
)
def test_the_cheapest_way_that_is_right(facts: Facts, way: Way) -> None:
    """Only what a file of ours can't say is left to a statement on whole rows."""
    assert choose(facts) is way
