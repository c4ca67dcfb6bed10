"""Names for places in a Kafka log."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
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


class EntryStep(NamedTuple):
    """How much of an unfinished message a target holds: the first ``done`` of its entries.

    Entries of all targets count. ``rows``: how many rows of the
    message a changelog has of them, so that the numbering goes on.
    """

    offset: int
    done: int
    rows: int = 0


def still_open(
    steps: Mapping[TopicPartition, EntryStep], marks: Mapping[TopicPartition, int]
) -> dict[TopicPartition, EntryStep]:
    """The steps that still count: of messages that the lanes' marks have not come to."""
    return {lane: step for lane, step in steps.items() if marks.get(lane, NO_OFFSET) < step.offset}


# Leader epoch of the log below a position: it shows that a log was replaced.


@dataclass(frozen=True, slots=True)
class LogEpoch:
    """The message just below ``below`` was written in this leader epoch.

    Always of a message that was seen: of a transaction's marker nothing is known, and an epoch
    older than that of what precedes a position would make the broker call a whole log cut.
    """

    epoch: int
    below: int


@dataclass(frozen=True, slots=True)
class EpochSpan:
    """Messages that were fetched, first and last offset, of one leader epoch."""

    epoch: int
    first: int
    last: int


class LogEpochs:
    """The epochs of one partition's messages, as far as they are not done. One thread."""

    def __init__(self, known: LogEpoch | None = None) -> None:
        """``known`` is what was recorded with the position that reading began at."""
        self._spans: list[EpochSpan] = []
        if known is not None:
            self._spans.append(EpochSpan(known.epoch, known.below - 1, known.below - 1))

    def add(self, span: EpochSpan) -> None:
        """Take what was fetched next."""
        if self._spans and self._spans[-1].epoch == span.epoch:
            span = EpochSpan(span.epoch, self._spans.pop().first, span.last)
        self._spans.append(span)

    def below(self, frontier: int) -> LogEpoch | None:
        """What to record with a frontier, which only ever grows: None while nothing is known."""
        while len(self._spans) > 1 and self._spans[1].first < frontier:
            del self._spans[0]
        if not self._spans or self._spans[0].first >= frontier:
            return None
        span = self._spans[0]
        return LogEpoch(span.epoch, min(frontier, span.last + 1))


# Times at which a partition's messages were made: a few samples, kept for what is not done.

MOST_SAMPLES = 1024
"""A sample is a fetched batch. A target that stands still for days must not make this grow: at the
bound every other sample goes, so the answers get coarser and stay right."""


class Timeline:
    """Maps an offset to the source's time, as exactly as a fetched batch. One thread."""

    def __init__(self) -> None:
        self._ends: list[int] = []
        self._times_ms: list[int] = []

    def add(self, next_offset: int, time_ms: int) -> None:
        """The last message below ``next_offset`` was made at ``time_ms`` (Unix milliseconds)."""
        self._ends.append(next_offset)
        self._times_ms.append(time_ms)
        if len(self._ends) > MOST_SAMPLES:
            # The newest stays: it says how fresh the whole is.
            self._ends = self._ends[::-1][::2][::-1]
            self._times_ms = self._times_ms[::-1][::2][::-1]

    def time_ms(self, offset: int) -> int | None:
        """When the message at that offset was made, None when no sample covers it."""
        at = bisect_right(self._ends, offset)
        return self._times_ms[at] if at < len(self._ends) else None

    def newest_below(self, offset: int) -> int | None:
        """The time of the newest message below ``offset``, None when nothing is known of it."""
        at = bisect_right(self._ends, offset) - 1
        return self._times_ms[at] if at >= 0 else None

    def forget_below(self, frontier: int) -> None:
        """Everything below is done: keep only the sample that shows how fresh that is."""
        at = bisect_right(self._ends, frontier) - 1
        if at > 0:
            del self._ends[:at]
            del self._times_ms[:at]
