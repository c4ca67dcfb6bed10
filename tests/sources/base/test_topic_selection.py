"""Which topics a pipeline reads."""

from __future__ import annotations

import pytest

from sources.base.topic_selection import TopicSelection, entry_problems

THERE = ["__consumer_offsets", "binlogd-offsets", "shop.items", "shop.orders", "shop.tmp.1", "x"]
SHOP = TopicSelection(
    ("x", r"^shop\.", "^__", "^binlogd"), (r"^shop\.tmp",), frozenset({"binlogd-offsets"})
)


def test_patterns_take_neither_kafkas_own_topics_nor_binlogds_nor_what_is_excluded() -> None:
    assert SHOP.matching(THERE) == ["shop.items", "shop.orders"]
    assert [topic for topic in THERE if SHOP.reads(topic)] == ["shop.items", "shop.orders", "x"]
    assert SHOP.unmatched(THERE) == ["^__", "^binlogd"]


def test_a_name_is_read_as_it_is_written() -> None:
    """Also one of Kafka's own, and one with signs that a pattern would understand."""
    named = TopicSelection(("__heartbeat.shop", "a.b"))
    assert (named.reads("__heartbeat.shop"), named.reads("a.b"), named.reads("a-b")) == (
        True, True, False
    )  # fmt: skip
    assert named.patterns == ()


def test_a_pattern_ends_where_it_says_so() -> None:
    assert TopicSelection(("^a",)).matching(["a", "ab", "b.a"]) == ["a", "ab"]
    assert TopicSelection(("^a$",)).matching(["a", "ab"]) == ["a"]
    assert TopicSelection(("^a$",), ("a",)).matching(["a"]) == []


def test_a_topic_that_is_named_too_has_to_be_there() -> None:
    both = TopicSelection(("shop.items", r"^shop\."))
    assert (both.comes_and_goes("shop.items"), both.comes_and_goes("shop.new")) == (False, True)
    assert both.unmatched(["shop.items"]) == []


@pytest.mark.parametrize(
    ("topics", "excluded", "said"),
    [
        (["^a("], [], "topics: '^a(': is no regular expression"),
        (["^a"], ["^b["], "exclude_topics: '^b[': is no regular expression"),
        (["^[[:alpha:]]"], [], "classes of POSIX are not understood"),
        ([""], [], "a topic has a name"),
        (["a"], ["b"], "topics has no pattern"),
        (["^a", "abc"], ["^ab"], "takes 'abc' away, which topics names"),
    ],
)
def test_what_can_not_be_meant_is_refused(
    topics: list[str], excluded: list[str], said: str
) -> None:
    (problem,) = entry_problems(topics, excluded)
    assert said in problem


def test_what_can_be_meant_is_taken() -> None:
    assert list(entry_problems(["a", r"^shop\.(orders|items).*"], [r"^shop\.tmp", "b"])) == []
