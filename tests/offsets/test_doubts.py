"""The mark of a target whose stored rows may differ."""

from __future__ import annotations

from offsets.snapshot import CHARACTERS, MOST, noted


def test_nothing_is_no_mark() -> None:
    """Without an event a mark stays what it is."""
    assert noted(None, ()) is None
    assert noted("a", ()) == "a"


def test_events_are_named_once_and_in_order() -> None:
    """The same thing again says nothing new."""
    assert noted(noted(None, ["a", "b"]), ["b", "c"]) == "a; b; c"


def test_a_mark_is_bounded_and_says_that_there_is_more() -> None:
    """A table with hundreds of changes does not make a text of megabytes."""
    mark = None
    for number in range(100):
        mark = noted(mark, [f"{number} " + "x" * 10_000])
    assert mark is not None
    *events, last = mark.split("; ")
    assert (len(events), last) == (MOST, "and more since, which the log names")
    assert {len(event) for event in events} == {CHARACTERS}
    assert noted(mark, ["again"]) == mark


def test_an_event_is_one_line_and_one_event() -> None:
    """Names are the source's: what they hold must not look like another event."""
    assert noted(None, ["a\nb; c"]) == "a b, c"
