"""The hours in which something may begin."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.config.pipeline_parts import DAY_S, Window

HOUR_S = 3600


@pytest.mark.parametrize(
    ("text", "hour", "opens_in_h"),
    [
        ("22:00-06:00", 23, 0),
        ("22:00-06:00", 5, 0),
        ("22:00-06:00", 6, 16),
        ("22:00-06:00", 21, 1),
        ("09:30-17:00", 9, 0.5),
        ("09:30-17:00", 17, 16.5),
    ],
)
def test_it_is_open_between_its_hours(text: str, hour: int, opens_in_h: float) -> None:
    """Also over midnight; the end belongs to it no more."""
    assert Window.parse(text).opens_in_s(3 * DAY_S + hour * HOUR_S) == opens_in_h * HOUR_S


@given(st.integers(0, 1439), st.integers(0, 1439), st.floats(0, 4e9))
def test_it_is_open_when_it_says_so(begins: int, ends: int, unix_s: float) -> None:
    """After the seconds that it names it is open."""
    if begins == ends:
        return
    window = Window(begins * 60, ends * 60)
    closed_s = window.opens_in_s(unix_s)
    assert 0 <= closed_s <= DAY_S
    # Half a second: a sum of floats may be a little less than the second at which it opens.
    assert window.opens_in_s(unix_s + (closed_s + 0.5 if closed_s else 0)) == 0


@pytest.mark.parametrize("text", ["22-06", "22:00", "24:00-06:00", "22:00-22:00", "", "9:00-17:00"])
def test_another_text_is_no_window(text: str) -> None:
    """And is refused by itself."""
    with pytest.raises(ValueError, match="is no window"):
        Window.parse(text)


def test_it_prints_as_it_was_written() -> None:
    """With the zone that is meant."""
    assert str(Window.parse("22:00-06:30")) == "22:00-06:30 UTC"
