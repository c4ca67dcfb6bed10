"""Messages in parts: put together, started over, dropped after a restart, holes found."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from offsets.parts import PART_OVERHEAD, MissingPart, Part, PartAssembler, TooLarge, Whole
from offsets.position import Run, TopicPartition

SOURCE = TopicPartition("dts", 0)


def assembler(*, at_frontier: bool = False, max_bytes: int = 1 << 20) -> PartAssembler:
    made = PartAssembler(max_bytes)
    made.begin(SOURCE, at_frontier=at_frontier)
    return made


def part(index: int, total: int, data: bytes = b"", version: int = 1) -> Part:
    return Part(version, total, index, data)


def test_a_message_in_one_part_is_whole_at_once() -> None:
    """As most are."""
    assert assembler().take(SOURCE, "", 7, part(0, 1, b"x")) == Whole(Run(7, 7), b"x")


def test_parts_of_shards_stand_between_each_other() -> None:
    """Each is put together on its own, and is open from its first part on."""
    parts = assembler()
    assert parts.take(SOURCE, "1", 5, part(0, 2, b"a")) is None
    assert parts.take(SOURCE, "2", 6, part(0, 2, b"A")) is None
    assert parts.fragments(SOURCE) == {"1": 5, "2": 6}
    assert parts.take(SOURCE, "1", 7, part(1, 2, b"b")) == Whole(Run(5, 7), b"ab")
    assert parts.fragments(SOURCE) == {"2": 6}
    assert parts.take(SOURCE, "2", 9, part(1, 2, b"B")) == Whole(Run(6, 9), b"AB")
    assert parts.held_bytes == 0


def test_a_first_part_that_comes_again_starts_over() -> None:
    """Appended to what was there it would make a message that nobody sent."""
    parts = assembler()
    for offset, index in enumerate([0, 1, 0, 1]):
        assert parts.take(SOURCE, "", offset, part(index, 3, b"%d" % index)) is None
    assert parts.take(SOURCE, "", 4, part(2, 3, b"2")) == Whole(Run(2, 4), b"012")
    assert parts.restarted == 1


@pytest.mark.parametrize(
    "second", [part(2, 3), part(1, 4), part(1, 3, version=2)], ids=["index", "total", "version"]
)
def test_a_hole_is_an_error_that_names_both(second: Part) -> None:
    """A message without its middle must not be taken for whole."""
    parts = assembler()
    parts.take(SOURCE, "s1", 5, part(0, 3))
    with pytest.raises(
        MissingPart, match=r"^dts:0 offset 6, shard s1: .* part 1 of 3 \(version 1\).* offset 5$"
    ):
        parts.take(SOURCE, "s1", 6, second)


def test_a_tail_at_the_recorded_frontier_is_dropped() -> None:
    """Its message was applied: the frontier is above its first part. Each shard may have one."""
    parts = assembler(at_frontier=True)
    assert parts.take(SOURCE, "1", 5, part(1, 3)) is None
    assert parts.take(SOURCE, "2", 6, part(3, 4)) is None
    assert parts.take(SOURCE, "1", 7, part(2, 3)) is None
    assert parts.dropped == 3
    assert parts.fragments(SOURCE) == {}


def test_a_second_tail_is_an_error() -> None:
    """What follows the first one began above the frontier."""
    parts = assembler(at_frontier=True)
    parts.take(SOURCE, "", 5, part(1, 2))
    with pytest.raises(MissingPart, match="part 1 of 2 without the parts before it"):
        parts.take(SOURCE, "", 6, part(1, 2))


def test_a_hole_in_a_tail_is_an_error() -> None:
    """A loss of parts that are not needed shows that others may be lost as well."""
    parts = assembler(at_frontier=True)
    parts.take(SOURCE, "", 5, part(1, 4))
    with pytest.raises(MissingPart, match="begun before the start"):
        parts.take(SOURCE, "", 6, part(3, 4))


def test_a_tail_behind_a_whole_message_is_an_error() -> None:
    """Its first part stood above the frontier, and is missing."""
    parts = assembler(at_frontier=True)
    parts.take(SOURCE, "", 5, part(0, 1))
    with pytest.raises(MissingPart, match="without the parts before it"):
        parts.take(SOURCE, "", 6, part(1, 2))


def test_a_tail_anywhere_else_is_an_error() -> None:
    """At the log's begin, or at a time: nobody knows that it was applied."""
    with pytest.raises(MissingPart, match="dts:0 offset 5: part 1 of 2 without"):
        assembler().take(SOURCE, "", 5, part(1, 2))


@pytest.mark.parametrize("impossible", [part(2, 2), part(0, 0), part(-1, 2)])
def test_a_part_that_cannot_be_is_an_error(impossible: Part) -> None:
    """The numbers contradict each other."""
    with pytest.raises(MissingPart, match="can't be"):
        assembler().take(SOURCE, "", 5, impossible)


def test_memory_is_bounded() -> None:
    """Beyond the bound the part is refused by name, and the ones before stay as they were."""
    most = 5 + 2 * PART_OVERHEAD
    parts = assembler(max_bytes=most)
    parts.take(SOURCE, "1", 5, part(0, 2, b"abc"))
    told = rf"shard 2: with part 0 of 2 .* {most + 1} bytes, more than {most}"
    with pytest.raises(TooLarge, match=told):
        parts.take(SOURCE, "2", 6, part(0, 2, b"xyz"))
    assert parts.take(SOURCE, "1", 7, part(1, 2, b"de")) == Whole(Run(5, 7), b"abcde")


def test_what_a_partition_held_goes_with_it() -> None:
    """On its return all is read again, from the first part on."""
    parts = assembler()
    parts.take(SOURCE, "", 5, part(0, 2, b"abc"))
    parts.drop(SOURCE)
    assert parts.held_bytes == 0
    parts.begin(SOURCE, at_frontier=True)
    assert parts.fragments(SOURCE) == {}


@st.composite
def logs(draw: st.DrawFn) -> list[tuple[str, Part, int]]:
    """A log: messages of up to four parts of three shards, parts interleaved, some re-sent.

    Each entry tells the message's number, too.
    """
    messages = draw(st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 4)), max_size=10))
    waiting: dict[str, list[tuple[Part, int]]] = {"a": [], "b": [], "c": []}
    for number, (shard, total) in enumerate(messages):
        cut = draw(st.integers(0, total - 1))  # so many parts are sent, and then all again
        sent = [*range(cut), *range(total)]
        waiting[shard] += [
            (Part(1, total, index, b"%d.%d;" % (number, index)), number) for index in sent
        ]
    log = []
    while any(waiting.values()):
        shard = draw(st.sampled_from([name for name, left in waiting.items() if left]))
        log.append((shard, *waiting[shard].pop(0)))
    return log


@settings(max_examples=500)
@given(logs(), st.data())
def test_every_message_once_and_a_restart_at_any_frontier_loses_none(
    log: list[tuple[str, Part, int]], data: st.DataObject
) -> None:
    """Against a list: what is whole before a crash and after is all, none with parts of another.

    The frontier is the lowest first part of what is open, else the position; all that is whole
    when it crashes was applied, so the restart may find tails.
    """
    crash = data.draw(st.integers(0, len(log)))
    parts, found = assembler(), []
    for offset, (shard, each, _) in enumerate(log[:crash]):
        whole = parts.take(SOURCE, shard, offset, each)
        found += [] if whole is None else [whole]
    frontier = min([crash, *parts.fragments(SOURCE).values()])
    applied = {whole.run for whole in found}
    parts.begin(SOURCE, at_frontier=True)
    for offset, (shard, each, _) in enumerate(log[frontier:], frontier):
        whole = parts.take(SOURCE, shard, offset, each)
        if whole is not None and whole.run not in applied:
            assert whole.run.through >= crash
            found.append(whole)
    totals = {number: each.total for _, each, number in log}
    expected = sorted(
        b"".join(b"%d.%d;" % (number, index) for index in range(total))
        for number, total in totals.items()
    )
    assert sorted(whole.data for whole in found) == expected
    assert parts.held_bytes == 0
