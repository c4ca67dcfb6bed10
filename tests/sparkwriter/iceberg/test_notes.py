"""Marks of tables that are gone stand in a namespace's properties, whatever their length."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from changes.model.errors import SinkUnavailable
from sparkwriter.iceberg.notes import LONGEST_NOTE, noted, notes


@given(st.text(max_size=40), st.integers(1, 200), st.text(max_size=3000))
def test_a_note_is_read_back(former: str, times: int, text: str) -> None:
    """As it was written last, be it shorter than the one before; no value is too long."""
    kept = notes("t", "{" + former * times + "}") | notes("t", "{" + text + "}")
    assert noted("t", kept.get) == "{" + text + "}"
    assert max(map(len, kept.values())) <= LONGEST_NOTE + len("4:4294967295|")


def test_a_note_that_was_written_in_part() -> None:
    """A crash between two properties is no marks at all, not those of a mixture."""
    former, later = notes("t", "{" + "a" * 2000), notes("t", "{" + "b" * 2000)
    for missing in later:
        with pytest.raises(SinkUnavailable, match="property t was written in part"):
            noted("t", {**later, missing: former[missing]}.get)


def test_no_note() -> None:
    """A name without any."""
    assert noted("t", {}.get) is None
