"""What a target shows less than it did is found, unless it is read again."""

from __future__ import annotations

from offsets.position import TopicPartition
from offsets.recovery import Gap, gaps, ways_out

ONE, TWO = TopicPartition("shop", 0), TopicPartition("shop", 1)


def test_a_mark_that_went_back_is_a_gap() -> None:
    """Changes above it were published once, are gone, and are below where reading begins."""
    assert gaps({ONE: 100}, {ONE: 50}, {ONE: 101}) == [Gap(ONE, 100, 50, 101)]


def test_a_table_that_is_gone_is_a_gap() -> None:
    """No mark is less than any."""
    (gap,) = gaps({ONE: 100}, {}, {ONE: 7})
    assert str(gap) == "shop:0 has no mark, stood at 100, and is read from 7"


def test_what_is_read_again_has_no_gap() -> None:
    """From the message after the mark on everything comes again."""
    assert not gaps({ONE: 100}, {ONE: 50}, {ONE: 51})
    assert gaps({ONE: 100}, {ONE: 50}, {ONE: 52})


def test_a_target_ahead_of_the_record_is_well() -> None:
    """The last write's record came too late for the crash: that is what marks are for."""
    assert not gaps({ONE: 100}, {ONE: 120}, {ONE: 90})
    assert not gaps({ONE: 100}, {ONE: 100}, {ONE: 500})


def test_another_members_lane_is_its_own_matter() -> None:
    """Where a partition is not read here, nobody here knows from where it is."""
    assert not gaps({ONE: 100, TWO: 100}, {ONE: 100}, {ONE: 101})


def test_the_ways_out_are_commands() -> None:
    """With the offset behind what the target still holds."""
    said = ways_out("p", "lake.s.t", Gap(TWO, 100, 50, 101))
    place = "--topic shop --partition 1 --to offset --at 51"
    assert f"`binlogd offsets reset --pipeline p --table lake.s.t {place}`" in said
    assert "`binlogd tables rebuild lake.s.t`" in said
