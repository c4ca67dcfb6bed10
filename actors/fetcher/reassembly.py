"""Reassembles messages that come in parts, and drops those that the producer sent again.

Parts are put together before anything is routed. The whole message stands at its last part's
offset, and its first part holds the frontier until then (``offsets.parts``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from actors.contract import messages as msg
from changes.formats.engine.format import Chunked, Format
from changes.model.model import BadMessage
from offsets.parts import Part, PartAssembler, Running
from offsets.position import Run, TopicPartition


@dataclass(frozen=True, slots=True)
class ReassembledBatch:
    """Part of a fetched batch: plain messages, or at most one that a part has made whole.

    ``open_before`` and ``open_after`` are the messages that lack parts, by name.
    """

    fetched: msg.Fetched
    run: Run | None = None
    open_before: Mapping[str, int] = field(default_factory=dict)
    open_after: Mapping[str, int] = field(default_factory=dict)
    running: Mapping[str, int] = field(default_factory=dict)
    """The producer's numbers after it."""

    def completed(self, sent: msg.Dispatched, *, last: bool) -> msg.Dispatched:
        """What the committer hears of it: ``sent`` with the runs and what is still open.

        ``last``: nothing more of it is sent. A bad message is sent after all before it, and is open
        until then.
        """
        fragments = self.open_after if self.run is None or last else self.open_before
        sent = replace(sent, fragments=fragments)
        if last and sent.next_offset == self.fetched.next_offset:
            sent = replace(sent, running=self.running)
        if self.run is not None and sent.lanes:
            sent = replace(sent, lanes={}, runs=dict.fromkeys(sent.lanes, (self.run,)))
        return sent


class SequenceGap(Exception):
    """A producer's running number jumps, or is missing: one line. A message was lost."""


class _RunningNumbers:
    """The running numbers of a partition's streams, since its reading began."""

    def __init__(self, known: Running | None) -> None:
        self._last: dict[str, int] = {} if known is None else dict(known.numbers)
        self.goes_back = False
        """Whether the latest message was sent again."""

    @property
    def numbers(self) -> Mapping[str, int]:
        """The last number of each stream; never changed once it was given."""
        return self._last

    def is_new(self, place: str, stream: str, number: int | None) -> bool:
        """Whether a message is new, not sent again; raises SequenceGap.

        Number 1 means that the producer began to count again. Its messages are taken: dropping one
        would be a loss, and applying one again in its order is none.
        """
        last = self._last.get(stream)
        shard = f", shard {stream}" if stream else ""
        if number is None:
            if last is not None:
                raise SequenceGap(f"{place}{shard}: no running number (ps) behind number {last}")
            return True
        self.goes_back = last is not None and 1 < number <= last
        if self.goes_back:
            return False
        if last is not None and number not in (1, last + 1):
            raise SequenceGap(
                f"{place}{shard}: the running number (ps) is {number}, expected is {last + 1}: "
                "messages between were lost"
            )
        self._last = self._last | {stream: number}
        return True


class Reassembly:
    """The parts of all assigned partitions; used by the fetcher's thread alone."""

    def __init__(self, format_: Format, max_bytes: int) -> None:
        self._format = format_ if isinstance(format_, Chunked) else None
        self._assembler = PartAssembler(max_bytes)
        self._running: dict[TopicPartition, _RunningNumbers] = {}
        self.repeated = 0
        """Messages that the producer had sent before: dropped."""

    @property
    def held_bytes(self) -> int:
        """The bytes of the parts of incomplete messages."""
        return self._assembler.held_bytes

    def begin(
        self, source: TopicPartition, *, at_frontier: bool, running: Running | None = None
    ) -> None:
        """Start a partition (``PartAssembler.begin``); ``running``: the numbers just below it."""
        self._running[source] = _RunningNumbers(running)
        self._assembler.begin(source, at_frontier=at_frontier)

    def drop(self, source: TopicPartition) -> None:
        """Forget a partition that was taken away."""
        self._running.pop(source, None)
        self._assembler.drop(source)

    def open(self, source: TopicPartition) -> Mapping[str, int]:
        """The messages of a partition that lack parts, with their first parts' offsets."""
        return self._assembler.fragments(source) if source in self._running else {}

    def numbers(self, source: TopicPartition) -> Mapping[str, int]:
        """The producer's last numbers in a partition, by stream."""
        return self._running[source].numbers if source in self._running else {}

    def is_whole(self, source: TopicPartition) -> bool:
        """Whether what was read of a partition is what its latest message stands behind. Not where
        a message lacks parts, nor where the latest was sent again: more was read than lies before
        it in the source's log."""
        running = self._running.get(source)
        return running is None or not (running.goes_back or self.open(source))

    def whole_behind(self, fetched: msg.Fetched) -> Sequence[bool]:
        """``is_whole`` behind each message of a batch that ``batches`` gets next."""
        source, values = fetched.source, fetched.values
        if self._format is None or not self._format.comes_in_parts(values):
            return [True] * len(values)
        running = _RunningNumbers(Running(0, self._running[source].numbers))
        lacking, found = set(self.open(source)), list[bool]()
        for offset, value in zip(fetched.offsets, values, strict=True):
            try:
                repeated = self._is_repeated(running, f"{source} offset {offset}", value)
            except SequenceGap:  # the pipeline stops there
                return found + [False] * (len(values) - len(found))
            part = None if repeated else _part(self._format, value)
            if part is not None and part[1].number == 0:
                lacking.add(part[0])
            if part is not None and part[1].number + 1 == part[1].total:
                lacking.discard(part[0])
            found.append(not (repeated or lacking))
        return found

    def _is_repeated(self, running: _RunningNumbers, place: str, value: bytes | None) -> bool:
        """Whether a message, good or bad, was sent again; raises SequenceGap."""
        assert self._format is not None
        if value is None:
            return False
        try:
            stream, number = self._format.sequence_number(value)
        except BadMessage as bad:
            raise SequenceGap(f"{place}: {bad}") from bad
        return not running.is_new(place, stream, number)

    def moved(self, source: TopicPartition, position: int) -> ReassembledBatch:
        """A batch without messages: the position moved on."""
        held = self.open(source)
        return ReassembledBatch(
            msg.Fetched(source, [], [], position), None, held, held, self.numbers(source)
        )

    def batches(self, fetched: msg.Fetched) -> Iterator[ReassembledBatch]:
        """Cut a batch where a part comes in, or a message that was sent again, which is dropped.

        Raises MissingPart, TooLarge, SequenceGap after what came before. Each part
        gets a batch, so that it is known exactly what is open at any position.
        """
        if self._format is None or not self._format.comes_in_parts(fetched.values):
            yield ReassembledBatch(fetched)
            return
        source, start = fetched.source, 0
        ends = [*fetched.offsets[1:], fetched.next_offset]
        for place, value in enumerate(fetched.values):
            before = self._running[source].numbers
            found = _part(self._format, value)
            try:
                at = f"{source} offset {fetched.offsets[place]}"
                repeated = self._is_repeated(self._running[source], at, value)
            except SequenceGap:
                plain, held = _cut(fetched, start, place, fetched.offsets[place]), self.open(source)
                yield ReassembledBatch(plain, None, held, held, before)
                raise
            if found is None and not repeated:
                continue
            held = self.open(source)
            if place > start:
                plain = _cut(fetched, start, place, fetched.offsets[place])
                yield ReassembledBatch(plain, None, held, held, before)
            start = place + 1
            nothing = _cut(fetched, start, start, ends[place])
            if repeated or found is None:
                self.repeated += 1
                yield ReassembledBatch(nothing, None, held, held, before)
                continue
            assert value is not None
            stream, part = found
            whole = self._assembler.take(source, stream, fetched.offsets[place], part)
            now, numbers = self.open(source), self.numbers(source)
            if whole is None:
                yield ReassembledBatch(nothing, None, held, now, numbers)
                continue
            one = replace(
                _cut(fetched, place, start, ends[place]),
                values=[self._format.reassembled(value, whole.data)],
            )
            yield ReassembledBatch(one, whole.run, held, now, numbers)
        if start < len(fetched.values) or not fetched.values:
            rest = _cut(fetched, start, len(fetched.values), fetched.next_offset)
            held = self.open(source)
            yield ReassembledBatch(rest, None, held, held, self.numbers(source))


def _part(format_: Chunked, value: bytes | None) -> tuple[str, Part] | None:
    """The part that a message is, None where it is whole or bad: routing reports bad ones."""
    try:
        return None if value is None else format_.part(value)
    except BadMessage:
        return None


def _cut(fetched: msg.Fetched, start: int, end: int, next_offset: int) -> msg.Fetched:
    offsets, values = fetched.offsets[start:end], fetched.values[start:end]
    return replace(fetched, offsets=offsets, values=values, next_offset=next_offset)
