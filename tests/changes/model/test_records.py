"""Records in one piece of memory are a sequence like any other."""

from __future__ import annotations

from array import array
from mmap import mmap

from hypothesis import given
from hypothesis import strategies as st

from changes.model.records import Values

RECORDS = st.lists(st.binary(max_size=5), max_size=8)


@given(RECORDS, st.slices(8))
def test_it_reads_as_the_list_that_it_was_made_of(records: list[bytes], some: slice) -> None:
    """By place, by slice, one after another."""
    values = Values.of(records)
    assert values == records
    assert len(values) == len(records)
    assert list(values) == [values[place] for place in range(len(records))]
    assert values[some] == records[some]


@given(st.lists(RECORDS, max_size=4))
def test_sequences_are_put_together_in_their_order(parts: list[list[bytes]]) -> None:
    """Whether they are in one piece already or not."""
    whole = [record for part in parts for record in part]
    assert Values.joined(parts) == whole
    assert Values.joined(map(Values.of, parts)) == whole


def test_a_part_of_a_larger_memory_is_read_in_place() -> None:
    """What stands before and behind it is not of it."""
    with mmap(-1, 32) as memory:
        memory.write(b"beforeABBCCCbehind")
        values = Values(memory, array("q", [1, 2, 3]), begin=6)
        assert values == [b"A", b"BB", b"CCC"]
        with values.whole as whole, values.stretch(1, 3) as stretch:
            assert (bytes(whole), bytes(stretch)) == (b"ABBCCC", b"BBCCC")


def test_others_that_look_alike_are_equal_and_no_more() -> None:
    """The records count, not where they are."""
    assert Values.of([b"a", b"bc"]) != Values.of([b"ab", b"c"])
    assert Values.of([b"a"]) != b"a"
