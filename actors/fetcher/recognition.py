"""Detects topics' formats from their first messages, and holds these until then.

No message of a topic goes on before its format is known, so the order stays, and the frontier stays
below: after a crash the same messages are read, and the same format is detected.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice

from actors.contract import messages as msg
from actors.contract.raw_messages import MESSAGE_OVERHEAD
from changes.formats.auto import AutoFormat, detector
from changes.formats.engine.format import Format, Packed, unpack
from changes.formats.recognise import confidences, not_read, recognised, unclear
from offsets.position import TopicPartition


@dataclass(frozen=True, slots=True)
class RecognitionBounds:
    """How much of a topic is held, of all its partitions, until its format is detected.

    ``messages``: more only puts off the error that names what came; fewer, and a compacted topic
    that begins with the ends of many keys stops the pipeline. ``bytes`` bound the memory.
    """

    messages: int = 1000
    bytes: int = 8 << 20


class NotRecognised(Exception):
    """A topic's format can't be detected, or can't be read: one line."""


@dataclass(frozen=True, slots=True)
class Recognised:
    """Batches that may go on, in their partitions' order, and the format that was just detected."""

    batches: tuple[msg.Fetched, ...]
    detected: msg.FormatDetected | None = None


class Recognition:
    """The topics of one pipeline; used by the fetcher's thread alone.

    With another format than ``auto`` all is known.
    """

    def __init__(self, format_: Format, bounds: RecognitionBounds) -> None:
        self._format = detector(format_)
        self._bounds = bounds
        self._held: dict[TopicPartition, list[msg.Fetched]] = {}

    def take(self, fetched: msg.Fetched) -> Recognised:
        """Take a batch; raises NotRecognised when enough was seen."""
        format_, topic = self._format, fetched.source.topic
        if format_ is None:
            return Recognised((fetched,))
        name, detected = format_.topics.of(topic), None
        held: list[msg.Fetched] = []
        if name is None:
            left = max(0, self._bounds.messages - self.waiting[topic])
            name = _first_detected(topic, islice(_records(fetched.values), left))
            if name is None:
                self._hold(fetched)
                return Recognised(())
            format_.topics.choose(topic, name)
            detected = msg.FormatDetected(topic, name)
            held = [each for source in self._sources(topic) for each in self._held.pop(source)]
        if (problem := format_.problem(name)) is not None:
            raise NotRecognised(f"{topic} is of format {name}: {problem}")
        batches = (_marked(format_, each) for each in (*held, fetched))
        return Recognised(tuple(batches), detected)

    def _hold(self, fetched: msg.Fetched) -> None:
        topic = fetched.source.topic
        self._held.setdefault(fetched.source, []).append(fetched)
        if self.waiting[topic] > self._bounds.messages or self._bytes(topic) > self._bounds.bytes:
            raise NotRecognised(self.problem(topic))

    def problem(self, topic: str) -> str:
        """Why a topic's format is not known: what came, and which formats it may be of."""
        records = [record for source in self._sources(topic) for record in self._records(source)]
        return (
            f"{topic}: its format can't be told from its first {len(records)} messages: "
            f"{unclear(records)}. Give the topic a pipeline with a format that is named"
        )

    def _records(self, source: TopicPartition) -> Iterator[Packed]:
        for fetched in self._held[source]:
            yield from _records(fetched.values)

    def _sources(self, topic: str) -> list[TopicPartition]:
        return sorted(source for source in self._held if source.topic == topic)

    def holds(self, source: TopicPartition) -> bool:
        """Whether messages of a partition wait: then its position has not moved."""
        return source in self._held

    def drop(self, source: TopicPartition) -> None:
        """Forget a partition that was taken away."""
        self._held.pop(source, None)

    @property
    def known(self) -> Mapping[str, str]:
        """The formats of the topics that are known."""
        return {} if self._format is None else self._format.topics.known

    @property
    def waiting(self) -> Counter[str]:
        """The messages that wait, by topic."""
        waiting: Counter[str] = Counter()
        for source, held in self._held.items():
            waiting[source.topic] += sum(len(fetched.values) for fetched in held)
        return waiting

    @property
    def held_bytes(self) -> int:
        """What they take."""
        return sum(self._bytes(topic) for topic in self.waiting)

    def _bytes(self, topic: str) -> int:
        return sum(
            MESSAGE_OVERHEAD + len(value or b"")
            for source in self._sources(topic)
            for fetched in self._held[source]
            for value in fetched.values
        )


def _first_detected(topic: str, records: Iterable[Packed]) -> str | None:
    """The format of the first record that shows one. Raises NotRecognised for a record of a writer
    that is not read, however many others may follow."""
    for record in records:
        if (name := recognised(confidences(record))) is not None:
            return name
        if (whose := not_read(record)) is not None:
            raise NotRecognised(f"{topic} holds {whose}, which is not read")
    return None


def _records(values: Iterable[bytes | None]) -> Iterator[Packed]:
    return (unpack(value) for value in values if value is not None)


def _marked(format_: AutoFormat, fetched: msg.Fetched) -> msg.Fetched:
    topic = fetched.source.topic
    values = [None if value is None else format_.marked(topic, value) for value in fetched.values]
    return replace(fetched, values=values)
