"""The rules of repairs and of keys that are followed, apart from what they ask."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from changes.model.errors import SinkUnavailable, TargetRefused, WaitsForRows
from daemon.operations.verify.key_texts import Move, Trail, _reached
from daemon.operations.verify.repair_story import (
    MOST_REFUSED,
    Ready,
    places,
    stands_behind,
    written,
)
from databases.base.port import Key
from offsets.position import TopicPartition

ONE, TWO = TopicPartition("shop", 0), TopicPartition("shop", 1)


def test_the_place_where_a_stream_stands_is_by_frontiers_and_marks() -> None:
    """A partition without a change of the table has no mark; another member may be further."""
    ready = Ready({}, {ONE: 3, TWO: 4}, {ONE: 5, TWO: 6})
    at = places(ready, {ONE: 7, TWO: 9}, {ONE: 11})
    assert at == {ONE: 12, TWO: 9}
    assert not stands_behind(ready, at)
    assert stands_behind(ready, places(ready, {ONE: 2, TWO: 9}, {ONE: 3}))


def keys(*numbers: int) -> list[Key]:
    return [(str(number),) for number in numbers]


class Table:
    """Takes rows, but for some; each write is told."""

    def __init__(self, hated: Sequence[Key], needs: dict[Key, Key] | None = None) -> None:
        self.rows: set[Key] = set()
        self.hated, self.needs = set(hated), needs or {}
        self.writes = 0

    def write(self, some: Sequence[Key]) -> None:
        self.writes += 1
        if self.hated & set(some):
            raise TargetRefused("a check")
        for key in some:
            if key in self.needs and self.needs[key] not in self.rows | set(some):
                raise WaitsForRows("a foreign key")
        self.rows |= set(some)


def test_rows_that_are_refused_leave_the_others_in_few_writes() -> None:
    """Halves of what is refused, down to the row."""
    table = Table(keys(17, 40))
    ended = written(keys(*range(64)), table.write)
    assert sorted(ended.done) == sorted(set(keys(*range(64))) - table.hated)
    assert ended.refused == dict.fromkeys(keys(17, 40), "a check")
    assert ended.left == []
    assert table.writes < 40


def test_a_row_that_needs_another_one_comes_after_it() -> None:
    """Where both are apart because a third is refused."""
    table = Table(keys(3), {("0",): ("7",)})
    ended = written(keys(*range(8)), table.write)
    assert ended.refused == {("3",): "a check"}
    assert ("0",) in table.rows


def test_a_table_that_takes_nothing_has_an_end() -> None:
    """Most rows are not tried at all."""
    every = keys(*range(10_000))
    table = Table(every)
    ended = written(every, table.write)
    assert len(ended.refused) == MOST_REFUSED
    assert len(ended.left) == 10_000 - MOST_REFUSED
    assert ended.done == []
    assert table.writes < 300


def test_what_may_pass_is_no_refusal() -> None:
    """The step is repeated."""

    def away(some: Sequence[Key]) -> None:
        raise SinkUnavailable("away")

    with pytest.raises(SinkUnavailable):
        written(keys(1, 2), away)


def test_keys_are_followed_over_others_and_partitions() -> None:
    """Moves of several partitions have no common order."""
    moves = [Move(("2",), ("3",)), Move(("1",), ("2",)), Move(("8",), ("9",))]
    assert _reached(moves, None) == keys(3, 2, 9)
    assert sorted(_reached(moves, {("1",)})) == keys(2, 3)
    assert _reached(moves, set()) == []


def test_a_trail_is_read_back() -> None:
    """As a job's memory keeps it."""
    for trail in (
        Trail({ONE: 5}),
        Trail({ONE: 5, TWO: 0}, frozenset(keys(1, 2)), 3, ended=True),
    ):
        assert Trail.of(trail.document()) == trail
