"""The last line of a run, and what fails it."""

from __future__ import annotations

from tests.live.tally import ENOUGH, Tally


def tally(equal: int, told: int) -> Tally:
    """Of a run without a difference that nobody was told of."""
    return Tally(tables=equal + told, equal=equal, told=told)


def test_a_run_in_which_fewer_than_nine_of_ten_are_equal_is_not_ok() -> None:
    """What is told only is no proof; of few tables it says nothing."""
    assert tally(90, 10).line().startswith("live: OK, ")
    assert (
        "100 tables: 90 equal (90 %), 10 told (0 without a cause), 0 silent" in tally(90, 10).line()
    )
    assert tally(89, 11).is_thin
    assert tally(89, 11).line().startswith("live: FEWER THAN NINE OF TEN EQUAL, ")
    assert not tally(0, ENOUGH - 1).is_thin


def test_a_silent_difference_is_the_first_word() -> None:
    """Whatever else there is."""
    found = tally(10, 90)
    found.silent.append("one")
    assert found.line().startswith("live: 1 SILENT, ")


def test_hand_overs_are_counted_where_there_were_to_be_some() -> None:
    """A run without one proves nothing."""
    found = tally(10, 0)
    assert "hand-overs" not in found.line()
    found.handovers = 0
    assert found.is_thin
    assert found.line().startswith("live: NO HAND-OVER, ")
    found.handovers = 21
    assert not found.is_thin
    assert found.line().endswith("0 silent, 21 hand-overs")


def test_what_an_operator_did_is_counted() -> None:
    """Loads, repairs, cancels and planted differences among it."""
    found = tally(10, 0)
    found.done.loads, found.done.cancels, found.done.planted = 2, 3, 4
    found.done.repairs = 5
    line = found.line()
    assert "2 loads" in line
    assert "5 rows repaired, 3 cancels" in line
    assert line.endswith("4 differences planted")
