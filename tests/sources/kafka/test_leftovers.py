"""Partitions that nobody was given, after a static member has come back to its group."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from offsets.position import TopicPartition
from sources.base.port import NotAnswered
from sources.kafka.leftovers import AGAIN_S, Leftovers

STATIC = {"group.instance.id": "i"}
NEW = frozenset({TopicPartition("t", 1)})


class Group:
    """Answers one after another, and how often it was asked."""

    def __init__(self, *answers: frozenset[TopicPartition] | Exception | None) -> None:
        self._answers = list(answers)
        self.asked = 0

    def __call__(self, topics: Collection[str]) -> frozenset[TopicPartition] | None:
        self.asked += 1
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def test_it_looks_once_after_each_join() -> None:
    group = Group(NEW, frozenset())
    leftovers = Leftovers(STATIC, group)
    leftovers.joins()
    assert not leftovers.found(["t"], 0.0)
    leftovers.granted(1.0)
    assert leftovers.found(["t"], 1.0)
    leftovers.granted(2.0)  # the rebalance that followed
    assert not leftovers.found(["t"], 2.0)
    leftovers.joins()
    leftovers.granted(3.0)
    assert not leftovers.found(["t"], 3.0)
    assert group.asked == 2


def test_it_asks_again_until_the_group_knows() -> None:
    group = Group(NotAnswered("nobody is there", away=True), None, NEW)
    leftovers = Leftovers(STATIC, group)
    leftovers.joins()
    leftovers.granted(0.0)
    found = [leftovers.found(["t"], n * AGAIN_S / 2) for n in range(5)]
    assert (found, group.asked) == ([False, False, False, False, True], 3)


@pytest.mark.parametrize("settings", [{}, {**STATIC, "group.protocol": "consumer"}])
def test_whose_assignment_is_always_made_anew_is_not_asked_about(settings: dict[str, str]) -> None:
    group = Group()
    leftovers = Leftovers(settings, group)
    leftovers.joins()
    leftovers.granted(0.0)
    assert not leftovers.found(["t"], 0.0)
    assert group.asked == 0
