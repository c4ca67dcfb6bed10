"""How keys are spread: what of several pieces is true of one write."""

from __future__ import annotations

from dataclasses import replace

from offsets.key_partitioning import KeyPartitioning

SIX = KeyPartitioning("shop", 6, "id integer (1)", checked=True)
EIGHT = replace(SIX, partitions=8)


def test_a_write_of_pieces_was_checked_with_the_fewest_partitions_of_any() -> None:
    """And the target keeps the most."""
    mixed = EIGHT.behind(SIX)
    assert (mixed.partitions, mixed.fewest) == (8, 6)
    assert EIGHT.behind(mixed) == mixed
    assert KeyPartitioning.parse(mixed.text()) == replace(EIGHT, checked=False)
    assert mixed.is_behind(EIGHT)
    assert not mixed.is_behind(SIX)


def test_pieces_of_one_number_are_as_each_is() -> None:
    """One that was not checked makes the whole unchecked."""
    assert SIX.behind(SIX) == SIX.behind(None) == SIX
    assert not SIX.behind(replace(SIX, checked=False)).checked
