"""What the reader of the compacted topic makes of what the client gives it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sources.kafka.topic_records import Entries
from sources.kafka.topic_store_tail import TopicTail


@dataclass
class Given:
    """One record as the client gives it."""

    at: int

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return self.at

    def error(self) -> None:
        return None

    def key(self) -> bytes:
        return b"k"

    def value(self) -> None:
        return None


def tail_after(*offsets: int) -> TopicTail:
    made = TopicTail({}, "offsets", Entries("p", "g"))
    records: list[Any] = [Given(offset) for offset in offsets]
    made._take(records)
    return made


def test_a_position_is_behind_the_last_record() -> None:
    """Where nothing was read it is the topic's begin."""
    assert (tail_after().position(0), tail_after(0, 1, 7).position(0)) == (0, 8)


def test_a_topic_made_again_does_not_take_the_position_back() -> None:
    """The client begins anew there by itself, maybe before the next set: that would then find
    nothing wrong, and all that the old topic said would be lost in silence."""
    assert tail_after(0, 1, 7, 0).position(0) == 8
