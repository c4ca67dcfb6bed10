"""Growing waits."""

from __future__ import annotations

from actors.runtime.backoff import Waits


def test_a_wait_doubles_up_to_the_longest_and_stays_there() -> None:
    """However many failures: a float would overflow after a thousand doublings."""
    waits = Waits(0.5, 3.0)
    assert [waits.after(n) for n in (1, 2, 3, 4, 5000)] == [0.5, 1.0, 2.0, 3.0, 3.0]


def test_jitter_takes_up_to_half_of_a_wait_away() -> None:
    """Never more: a wait of nothing would be no wait."""
    assert Waits(1.0, 8.0, lambda: 0.0).after(3) == 2.0
    assert Waits(1.0, 8.0, lambda: 1.0).after(3) == 4.0
