"""When a row became visible, from a table's history."""

from __future__ import annotations

from bench.compare.fresh import visible_at


def test_a_snapshot_is_visible_when_main_leads_to_it() -> None:
    """Not when it was made: a branch is moved to main as a whole."""
    parents = {1: None, 2: 1, 3: 2, 4: 3}
    assert visible_at([(100, 1), (200, 3)], parents) == {1: 100, 2: 200, 3: 200}


def test_it_stays_visible_since_the_first_time() -> None:
    """Rolled back and led to again: the first time counts."""
    assert visible_at([(100, 1), (200, 2), (300, 1), (400, 2)], {1: None, 2: 1}) == {1: 100, 2: 200}


def test_an_expired_parent_ends_the_walk() -> None:
    """Its own time is told by its own entry, if there is one."""
    assert visible_at([(200, 9)], {9: 8}) == {8: 200, 9: 200}
