"""Puts messages together that a producer cut into parts, each part a message of the log.

Parts of one message come in order, in one partition; those of several streams (shards) may be
mixed. A whole message names its first and last offset. Until then its first part
holds the frontier (``LaneLedger.dispatched``, ``fragments``), so after a restart all parts of what
was not applied are read again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from offsets.position import Run, TopicPartition

PART_OVERHEAD = 128
"""Bytes that a part counts beside its data: what a Python object and its places in lists take. So
many small parts, or many streams with one each, are bounded as well."""


class Part(NamedTuple):
    """One part: the layout's version, how many parts the message has, which one this is, from 0."""

    version: int
    total: int
    number: int
    data: bytes


class Whole(NamedTuple):
    """A message with all its parts. ``run``: one offset where it never was cut."""

    run: Run
    data: bytes


class MissingPart(Exception):
    """A part is not where it must be: one line with partition, stream, offset, what was expected.

    Something is missing in the log, or reading began in the middle of a message.
    """


class TooLarge(Exception):
    """Incomplete messages would take more memory than allowed: one line that names the largest."""


@dataclass(slots=True)
class _Open:
    """A message that lacks parts."""

    first: int
    version: int
    total: int
    data: list[bytes] = field(default_factory=list)
    size: int = 0

    def add(self, data: bytes) -> None:
        self.data.append(data)
        self.size += len(data) + PART_OVERHEAD


class _Tail(NamedTuple):
    """The end of a message whose head was applied before: the part that comes next of it."""

    version: int
    total: int
    number: int


class PartAssembler:
    """All streams of one reader; used by one thread. Holds at most ``max_bytes`` of parts.

    A first part starts its stream over, whatever was open there: a producer that went back re-sends
    from the begin of a message. Whether all that it had sent comes again, the format has to watch
    (a running number in the headers); ``restarted`` counts what was left unfinished.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._held = 0
        self._open: dict[TopicPartition, dict[str, _Open]] = {}
        self._tails: dict[TopicPartition, dict[str, _Tail | None]] = {}
        self.restarted = 0
        self.dropped = 0
        """Parts of tails, whose messages were applied before the restart."""

    @property
    def held_bytes(self) -> int:
        """The bytes of the parts of incomplete messages."""
        return self._held

    def begin(self, source: TopicPartition, *, at_frontier: bool) -> None:
        """Start reading a partition, or start it again: what was open there comes again.

        ``at_frontier``: from a frontier that was recorded. What began below it was applied, so the
        first thing that a stream shows may be such a message's tail, which is dropped. From any
        other place that would be a loss: an error.
        """
        self.drop(source)
        self._open[source] = {}
        if at_frontier:
            self._tails[source] = {}

    def drop(self, source: TopicPartition) -> None:
        """Forget a partition that was taken away."""
        self._held -= sum(each.size for each in self._open.pop(source, {}).values())
        self._tails.pop(source, None)

    def fragments(self, source: TopicPartition) -> dict[str, int]:
        """The messages that lack parts, by stream, each with its first part's offset."""
        return {stream: each.first for stream, each in self._open[source].items()}

    def take(self, source: TopicPartition, stream: str, offset: int, part: Part) -> Whole | None:
        """Add the next part of a stream; gives the message that it completes.

        Raises MissingPart or TooLarge; the part is then not taken.
        """
        if not 0 <= part.number < part.total:
            raise MissingPart(
                f"{_place(source, stream, offset)}: part {part.number} of {part.total} can't be"
            )
        if part.number == 0:
            return self._start(source, stream, offset, part)
        found = self._open[source].get(stream)
        if found is None:
            self._take_tail(source, stream, offset, part)
            return None
        expected = Part(found.version, found.total, len(found.data), b"")
        if part[:3] != expected[:3]:
            raise MissingPart(_other(source, stream, offset, part, expected, found.first))
        self._reserve(source, stream, offset, part)
        found.add(part.data)
        return self._finish(source, stream, offset, found)

    def _start(self, source: TopicPartition, stream: str, offset: int, part: Part) -> Whole | None:
        self._close_tail(source, stream)
        left = self._open[source].get(stream)
        self._reserve(source, stream, offset, part, freed=0 if left is None else left.size)
        if left is not None:
            self.restarted += 1
        found = _Open(offset, part.version, part.total)
        found.add(part.data)
        self._open[source][stream] = found
        return self._finish(source, stream, offset, found)

    def _finish(
        self, source: TopicPartition, stream: str, offset: int, found: _Open
    ) -> Whole | None:
        if len(found.data) < found.total:
            return None
        del self._open[source][stream]
        self._held -= found.size
        return Whole(Run(found.first, offset), b"".join(found.data))

    def _reserve(
        self, source: TopicPartition, stream: str, offset: int, part: Part, freed: int = 0
    ) -> None:
        held = self._held - freed + len(part.data) + PART_OVERHEAD
        if held > self._max_bytes:
            raise TooLarge(
                f"{_place(source, stream, offset)}: with part {part.number} of {part.total} the "
                f"incomplete messages take {held} bytes, more than {self._max_bytes}"
            )
        self._held = held

    def _take_tail(self, source: TopicPartition, stream: str, offset: int, part: Part) -> None:
        """Drop a part whose message began below the recorded frontier."""
        tails = self._tails.get(source)
        expected = None if tails is None else tails.get(stream)
        if tails is None or (stream in tails and expected is None):
            raise MissingPart(
                f"{_place(source, stream, offset)}: part {part.number} of {part.total} without "
                "the parts before it"
            )
        if expected is not None and part[:3] != expected:
            raise MissingPart(_other(source, stream, offset, part, expected, None))
        self.dropped += 1
        ended = part.number + 1 == part.total
        tails[stream] = None if ended else _Tail(part.version, part.total, part.number + 1)

    def _close_tail(self, source: TopicPartition, stream: str) -> None:
        """A stream that has begun a message shows no tail any more."""
        tails = self._tails.get(source)
        if tails is not None:
            tails[stream] = None


def _place(source: TopicPartition, stream: str, offset: int) -> str:
    return f"{source} offset {offset}" + (f", shard {stream}" if stream else "")


def _other(
    source: TopicPartition,
    stream: str,
    offset: int,
    part: Part,
    expected: Part | _Tail,
    first: int | None,
) -> str:
    began = "which was begun before the start" if first is None else f"begun at offset {first}"
    return (
        f"{_place(source, stream, offset)}: part {part.number} of {part.total} (version "
        f"{part.version}), expected is part {expected.number} of {expected.total} (version "
        f"{expected.version}) of the message {began}"
    )


# Running numbers that a producer gives its messages: they show repeated messages, and gaps.

MOST_SAMPLES = 1024
"""A sample is a batch that was sent on. At the bound every other one is dropped: then fewer
positions have their numbers recorded, and what is recorded stays right."""


@dataclass(frozen=True, slots=True)
class Running:
    """The last number of each stream (shard) below the offset ``at``."""

    at: int
    numbers: Mapping[str, int]


class RunningTrail:
    """The numbers of one partition at the positions that are not done. One thread."""

    def __init__(self, known: Running | None = None) -> None:
        """``known`` is what was recorded with the position that reading began at."""
        self._samples: list[Running] = [] if known is None else [known]

    def add(self, at: int, numbers: Mapping[str, int]) -> None:
        """All below ``at`` was sent on, and these are the numbers then."""
        if self._samples and self._samples[-1].at == at:
            self._samples.pop()
        self._samples.append(Running(at, numbers))
        if len(self._samples) > MOST_SAMPLES:
            self._samples = self._samples[::-1][::2][::-1]

    def at(self, frontier: int) -> Running | None:
        """What to record with a frontier, which only ever grows: None where it is not known."""
        while self._samples and self._samples[0].at < frontier:
            del self._samples[0]
        if self._samples and self._samples[0].at == frontier:
            return self._samples[0]
        return None
