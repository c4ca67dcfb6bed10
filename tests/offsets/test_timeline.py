"""The samples that tell how old a message is."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from offsets.position import MOST_SAMPLES, Timeline


def timeline(*samples: tuple[int, int]) -> Timeline:
    made = Timeline()
    for next_offset, time_ms in samples:
        made.add(next_offset, time_ms)
    return made


def test_an_offset_has_the_time_of_the_batch_it_came_in() -> None:
    """Bounds included: the message at ``next_offset`` belongs to the batch after."""
    made = timeline((10, 1000), (20, 2000))
    assert [made.time_ms(at) for at in (0, 9, 10, 19, 20)] == [1000, 1000, 2000, 2000, None]


def test_the_newest_message_below_the_frontier_tells_the_freshness() -> None:
    """Inside the first batch nothing is known to be done."""
    made = timeline((10, 1000), (20, 2000))
    assert [made.newest_below(at) for at in (9, 10, 15, 20, 99)] == [None, 1000, 1000, 2000, 2000]


def test_what_is_done_is_forgotten_but_for_how_fresh_it_is() -> None:
    """Otherwise a quiet partition would lose its freshness."""
    made = timeline((10, 1000), (20, 2000), (30, 3000))
    made.forget_below(20)
    assert (made.newest_below(20), made.newest_below(19)) == (2000, None)
    made.forget_below(30)
    assert made.newest_below(30) == 3000


@given(st.integers(min_value=1, max_value=5 * MOST_SAMPLES), st.data())
def test_a_target_that_stands_still_does_not_make_it_grow(count: int, data: st.DataObject) -> None:
    """At the bound the answers get coarser: never older than true, the newest one exact."""
    made = timeline(*((10 * n, n) for n in range(1, count + 1)))
    assert len(made._ends) <= MOST_SAMPLES
    at = data.draw(st.integers(0, 10 * count - 1))
    found = made.time_ms(at)
    assert found is not None
    assert at // 10 + 1 <= found <= count
    assert made.newest_below(10 * count) == count
