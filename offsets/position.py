"""Names for places in a Kafka log."""

from __future__ import annotations

from typing import NamedTuple

NO_OFFSET = -1
"""The high-water mark of a lane of which nothing is written yet: one below the first offset."""


class TopicPartition(NamedTuple):
    """One partition of one topic; sorts by topic, then number; prints as ``topic:3``."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}:{self.partition}"

    @classmethod
    def parse(cls, text: str) -> TopicPartition:
        """Read back what ``str()`` wrote. The last colon cuts: topics hold none."""
        topic, _, number = text.rpartition(":")
        if not topic or not number.isdecimal():
            raise ValueError(f"not a topic:partition: {text!r}")
        return cls(topic, int(number))


class Lane(NamedTuple):
    """What one partition holds for one target. Order is kept inside a lane, never between lanes."""

    source: TopicPartition
    target: str


class Run(NamedTuple):
    """A message that came in parts: the offsets of its first part and of its last."""

    first: int
    through: int
