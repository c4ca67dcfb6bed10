"""The steps of a rebuild: what is read again, when it is whole, how it ends or is given up."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from offsets.position import TopicPartition
from offsets.rebuild import Rebuild, missing_in_log
from offsets.rebuild_steps import begun, cancelled, delayed, ended, is_complete, lanes_of
from offsets.snapshot import PartitionState, Snapshot, SpillMark, TargetMark
from offsets.snapshot_text import decode, encode

ONE, TWO, OTHER = (TopicPartition("shop", n) for n in range(3))
T, NEW = "lake.s.t", "lake.s.t__rebuild_1"


def recorded(mark: int = 90, frontier: int = 100) -> Snapshot:
    """A target of two partitions, a third one beside them; its second lane is in a spill."""
    return Snapshot(
        "p",
        "g",
        partitions={source: PartitionState(frontier, frontier) for source in (ONE, TWO, OTHER)},
        targets={T: TargetMark("v", {ONE: mark})},
        spills={T: SpillMark(10, {TWO: (40, 99)})},
    )


def start() -> Snapshot:
    return begun(recorded(), T, NEW, {ONE: 0, TWO: 5}, keep_old=False)


def at(snapshot: Snapshot, **frontiers: int) -> Snapshot:
    """With other frontiers."""
    names = {"one": ONE, "two": TWO}
    states = {names[name]: PartitionState(offset) for name, offset in frontiers.items()}
    return replace(snapshot, partitions={**snapshot.partitions, **states})


def test_its_partitions_are_read_from_the_logs_start() -> None:
    """The others stay, and the group is to follow."""
    states = start().partitions
    assert states[ONE] == PartitionState(0, None, reset=True)
    assert states[TWO] == PartitionState(5, None, reset=True)
    assert states[OTHER] == PartitionState(100, 100)


def test_it_is_whole_when_all_that_was_done_has_come_by() -> None:
    """Written or spilled: below the frontier everything was done."""
    assert not is_complete(start(), T)
    assert not is_complete(at(start(), one=100, two=99), T)
    assert is_complete(at(start(), one=100, two=100), T)


def test_a_mark_ahead_of_the_frontier_is_waited_for() -> None:
    """The old table holds it, so the new one must."""
    assert lanes_of(recorded(mark=120), T) == {ONE: 120, TWO: 99}


def test_it_is_not_whole_while_some_of_it_is_in_a_spill() -> None:
    """Those messages count as done and are not in the new table."""
    whole = at(start(), one=100, two=100)
    spilled = replace(whole, spills={**whole.spills, NEW: SpillMark(1, {ONE: (3, 4)})})
    assert not is_complete(spilled, T)


def test_an_old_table_that_holds_more_puts_the_end_off() -> None:
    """It was written after what is recorded of it."""
    later = delayed(at(start(), one=100, two=100), T, {ONE: 110})
    assert not is_complete(later, T)
    assert is_complete(at(later, one=111), T)


def test_at_the_end_the_target_has_what_the_new_table_holds() -> None:
    """The log had all of its spill too."""
    new = TargetMark("w", {ONE: 150, TWO: 160})
    done = ended(replace(start(), targets={**start().targets, NEW: new}), T)
    assert done.targets[T] == new
    assert done.targets[NEW] == TargetMark(None, {})
    assert not done.spills
    assert not done.rebuilds


def test_given_up_the_old_table_gets_what_it_missed() -> None:
    """From behind what it held: by then the frontier may be far above."""
    given_up = cancelled(at(start(), one=500, two=50), T)
    assert given_up.rebuilds[T].cancelled
    assert given_up.partitions[ONE] == PartitionState(100, None, reset=True)
    assert given_up.partitions[TWO].frontier == 50
    rest = ended(given_up, T)
    assert (rest.targets[T], rest.spills) == (recorded().targets[T], recorded().spills)
    assert not rest.rebuilds


def test_a_log_that_begins_later_is_named() -> None:
    """With both numbers."""
    assert missing_in_log({ONE: 1, TWO: 1}, {ONE: 0, TWO: 7}) == [
        f"{TWO} begins at offset 7, not at 0"
    ]


@given(
    st.dictionaries(st.sampled_from([ONE, TWO]), st.integers(-1, 10**12)),
    st.booleans(),
    st.booleans(),
)
def test_a_rebuild_survives_the_file(
    until: dict[TopicPartition, int], keep_old: bool, cancelled: bool
) -> None:
    """Whatever is recorded is read back, also by whoever edits the file."""
    snapshot = replace(recorded(), rebuilds={T: Rebuild(NEW, until, keep_old, cancelled)})
    assert decode(encode(snapshot)) == snapshot
    assert decode(encode(snapshot), edited=True) == snapshot
