"""Holds messages that can't be read yet: of an unknown format, or of a schema that is not kept yet.

A topic's format is detected from its first messages. A schema is fetched from the registry. No
message goes on before both are known, so the order stays, and the frontier stays below: after a
crash the same messages are read, and the same format is detected.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice

from actors.contract import messages as msg
from actors.contract.raw_messages import MESSAGE_OVERHEAD
from changes.formats.auto import AutoFormat
from changes.formats.detector import detector
from changes.formats.engine.format import Format, Packed, mark_in, unpack
from changes.formats.recognise import recognised, unclear, why_not_read
from changes.formats.wire.frames import needed
from changes.formats.wire.schemas import SchemaId
from changes.model.registry import Registry
from offsets.position import TopicPartition
from settings.counted import counted


@dataclass(frozen=True, slots=True)
class RecognitionBounds:
    """How much of a topic is held, of all its partitions, until its format is detected.

    ``messages``: more only puts off the error that names what came; fewer, and a compacted topic
    that begins with the ends of many keys stops the pipeline. ``bytes`` bound the memory.

    A partition that waits for a schema is paused, so it holds what one poll brought. ``of_all``
    bounds these together: while more is held, nothing is polled.
    """

    messages: int = 1000
    bytes: int = 8 << 20
    of_all: int = 64 << 20


class NotRecognised(Exception):
    """A topic's format can't be detected, or can't be read: one line."""


@dataclass(frozen=True, slots=True)
class Recognised:
    """Batches that may go on, in their partitions' order, the formats that were just detected, and
    schemas that were not requested yet."""

    batches: tuple[msg.Fetched, ...] = ()
    detected: tuple[msg.FormatDetected, ...] = ()
    wanted: tuple[SchemaId, ...] = ()

    def __add__(self, other: Recognised) -> Recognised:
        """Both, this one's batches first."""
        wanted = (*self.wanted, *other.wanted)
        return Recognised(self.batches + other.batches, self.detected + other.detected, wanted)


class Recognition:
    """The topics of one pipeline; used by the fetcher's thread alone.

    With another format than ``auto`` all formats are known, without a registry all schemas.
    """

    def __init__(
        self, format_: Format, bounds: RecognitionBounds, registry: Registry | None = None
    ) -> None:
        self._format = detector(format_)
        self._framed = format_.framed
        self._bounds = bounds
        self._registry = registry
        self._held: dict[TopicPartition, list[msg.Fetched]] = {}
        self._awaited: dict[TopicPartition, set[SchemaId]] = {}
        self._asked: set[SchemaId] = set()
        self._settled: set[SchemaId] = set()

    def take(self, fetched: msg.Fetched) -> Recognised:
        """Take a batch; raises NotRecognised when enough was seen of an unknown format."""
        lacking = self._lacking(fetched)
        if lacking or fetched.source in self._awaited:
            self._held.setdefault(fetched.source, []).append(fetched)
            self._awaited.setdefault(fetched.source, set()).update(lacking)
            wanted = tuple(sorted(lacking - self._asked))
            self._asked.update(wanted)
            return Recognised(wanted=wanted)
        return Recognised((fetched,)) if self._format is None else self._detect(fetched)

    def settle(self, identities: Iterable[SchemaId]) -> Recognised:
        """These schemas are kept, or will not come: what waited for no others goes on. So do
        messages whose format a schema shows that comes late.

        Raises NotRecognised.
        """
        self._settled.update(identities)
        for source in [s for s, awaited in self._awaited.items() if awaited <= self._settled]:
            del self._awaited[source]
        found = Recognised()
        for source in [each for each in self._held if each not in self._awaited]:
            for fetched in self._held.pop(source, ()):  # another one may have let it go
                found += self.take(fetched)
        return found

    def _lacking(self, fetched: msg.Fetched) -> set[SchemaId]:
        """The schemas that a batch needs and that are not kept yet."""
        if self._registry is None or not self._may_be_framed(fetched):
            return set()
        return needed(fetched.values, self._registry) - self._settled

    def needed_by(self, value: bytes | None) -> set[SchemaId]:
        """The schemas that one message needs, marked or not."""
        if self._registry is None or value is None:
            return set()
        return needed((value[len(mark_in(value)) :],), self._registry)

    def _may_be_framed(self, fetched: msg.Fetched) -> bool:
        """Whether records of this topic may name schemas. The bytes of some other format may look
        as if they did, so that format decides first."""
        format_ = self._format
        if format_ is None:
            return self._framed
        topic = fetched.source.topic
        name = format_.topics.of(topic)
        if name is None:
            first = islice(_records(fetched.values), self._bounds.messages)
            name = _first_detected(format_, topic, first)
        return name is None or format_.may_be_framed(name)

    def _detect(self, fetched: msg.Fetched) -> Recognised:
        format_, topic = self._format, fetched.source.topic
        assert format_ is not None
        name = format_.topics.of(topic)
        detected: tuple[msg.FormatDetected, ...] = ()
        held: list[msg.Fetched] = []
        if name is None:
            left = max(0, self._bounds.messages - self.waiting[topic])
            name = _first_detected(format_, topic, islice(_records(fetched.values), left))
            if name is None:
                self._hold(fetched)
                return Recognised()
            format_.topics.choose(topic, name)
            detected = (msg.FormatDetected(topic, name),)
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
        first = counted(len(records), "message")
        return (
            f"{topic}: its format can't be detected from its first {first}: "
            f"{unclear(records)}. Give the topic a pipeline with a format that is named"
        )

    def _records(self, source: TopicPartition) -> Iterator[Packed]:
        for fetched in self._held[source]:
            yield from _records(fetched.values)

    def _sources(self, topic: str) -> list[TopicPartition]:
        """A topic's partitions that wait for its format alone."""
        held = self._held.keys() - self._awaited.keys()
        return sorted(source for source in held if source.topic == topic)

    def holds(self, source: TopicPartition) -> bool:
        """Whether messages of a partition wait: then its position has not moved."""
        return source in self._held

    def drop(self, source: TopicPartition) -> None:
        """Forget a partition that was taken away."""
        self._held.pop(source, None)
        self._awaited.pop(source, None)

    @property
    def known(self) -> Mapping[str, str]:
        """The formats of the topics that are known."""
        return {} if self._format is None else self._format.topics.known

    @property
    def waiting(self) -> Counter[str]:
        """The messages that wait for their topic's format, by topic."""
        return self._count(self._held.keys() - self._awaited.keys())

    @property
    def awaiting_schemas(self) -> dict[TopicPartition, tuple[SchemaId, ...]]:
        """The partitions that wait for schemas, and for which."""
        return {s: tuple(sorted(ids - self._settled)) for s, ids in self._awaited.items()}

    def waiting_for_schemas(self) -> Counter[str]:
        """The messages that wait for schemas, by topic."""
        return self._count(self._awaited)

    def _count(self, sources: Iterable[TopicPartition]) -> Counter[str]:
        waiting: Counter[str] = Counter()
        for source in sources:
            waiting[source.topic] += sum(len(fetched.values) for fetched in self._held[source])
        return waiting

    @property
    def full(self) -> bool:
        """Whether nothing more may be taken before a schema comes."""
        return bool(self._awaited) and self.held_bytes > self._bounds.of_all

    @property
    def held_bytes(self) -> int:
        """What they take."""
        return sum(map(_size, self._held.values()))

    def _bytes(self, topic: str) -> int:
        return sum(_size(self._held[source]) for source in self._sources(topic))


def _size(held: Iterable[msg.Fetched]) -> int:
    values = (value for fetched in held for value in fetched.values)
    return sum(MESSAGE_OVERHEAD + len(value or b"") for value in values)


def _first_detected(format_: AutoFormat, topic: str, records: Iterable[Packed]) -> str | None:
    """The format of the first record that shows one. Raises NotRecognised where none does and one
    is of a writer that is not read, however many others may follow."""
    unread: str | None = None
    for record in records:
        if (name := recognised(format_.confidences(record))) is not None:
            return name
        unread = unread or why_not_read(record, format_.registry)
    if unread is not None:
        raise NotRecognised(f"{topic} {unread}")
    return None


def _records(values: Iterable[bytes | None]) -> Iterator[Packed]:
    return (unpack(value) for value in values if value is not None)


def _marked(format_: AutoFormat, fetched: msg.Fetched) -> msg.Fetched:
    topic = fetched.source.topic
    values = [None if value is None else format_.marked(topic, value) for value in fetched.values]
    return replace(fetched, values=values)
