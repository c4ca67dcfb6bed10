"""Names for places in a Kafka log."""

from __future__ import annotations

from collections.abc import Mapping
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


def job_lane(job: str) -> TopicPartition:
    """The lane in which a job's own writes are numbered. No topic has a slash in its name."""
    return TopicPartition(f"load/{job}", 0)


def repair_lane(job: str) -> TopicPartition:
    """The lane of a job that writes rows as the source has them, beside the stream."""
    return TopicPartition(f"repair/{job}", 0)


def is_load(lane: TopicPartition) -> bool:
    """Whether a lane is that of a load, whose rows overwrite none of the stream's."""
    return lane.topic.startswith("load/")


def is_job_lane(lane: TopicPartition) -> bool:
    """Whether a lane is a job's and of no log: lag, resets and rules of partitions leave it out."""
    return "/" in lane.topic


class Lane(NamedTuple):
    """What one partition holds for one target. Order is kept inside a lane, never between lanes."""

    source: TopicPartition
    target: str


class Run(NamedTuple):
    """A message that came in parts: the offsets of its first part and of its last."""

    first: int
    through: int


class Step(NamedTuple):
    """How much of an unfinished message a target holds: the first ``done`` of its entries.

    Entries of all targets count. ``rows``: how many rows of the
    message a changelog has of them, so that the numbering goes on.
    """

    offset: int
    done: int
    rows: int = 0


def still_open(
    steps: Mapping[TopicPartition, Step], marks: Mapping[TopicPartition, int]
) -> dict[TopicPartition, Step]:
    """The steps that still count: of messages that the lanes' marks have not come to."""
    return {lane: step for lane, step in steps.items() if marks.get(lane, NO_OFFSET) < step.offset}
