"""Indexes all letters of a pipeline, in files and in its topic, with their marks."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase

from actors.contract.ports import NotKept
from daemon.config.pipeline_config import PipelineConfig
from daemon.state.dead_letters.files import read_files, read_marks
from offsets.position import TopicPartition
from settings.units import moment_of, seconds_of
from sources.base.letter import Letter, LetterId, Mark, parse_place

FILES = "file"

STATES = ("open", "replayed", "discarded")
"""Of a letter."""


class Unreadable(Exception):
    """A store of letters can't be read: one line."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A stored letter. ``store`` is ``file`` or ``topic:NAME``; ``mark`` is the last one."""

    letter: Letter
    store: str
    mark: Mark | None

    @property
    def state(self) -> str:
        """One of ``STATES``."""
        return "open" if self.mark is None else self.mark.state


@dataclass(frozen=True, slots=True)
class LetterFilter:
    """A filter of letters. Empty: all. Patterns know ``*``, ``?`` and ``[...]``."""

    places: tuple[tuple[TopicPartition, int], ...] = ()
    topic: str | None = None
    table: str | None = None
    reason: str | None = None
    since: datetime | None = None
    state: str | None = None

    @property
    def everything(self) -> bool:
        """Whether the filter is empty."""
        return self == LetterFilter()

    def __call__(self, stored: Stored) -> bool:
        """Whether a letter passes the filter."""
        letter = stored.letter
        names = (*letter.tables, *filter(None, [letter.id.target]))
        return (
            (not self.places or (letter.id.source, letter.id.offset) in self.places)
            and (self.topic is None or self.topic == letter.id.source.topic)
            and (self.table is None or any(fnmatchcase(name, self.table) for name in names))
            and (self.reason is None or self.reason == letter.reason or self.reason in letter.error)
            and (self.since is None or letter.when >= self.since)
            and (self.state is None or self.state == stored.state)
        )


def parse_since(text: str, now: datetime) -> datetime:
    """A time with its zone (ISO 8601), or an age: 90s, 30m, 2h, 7d. Raises ValueError."""
    with suppress(ValueError, OverflowError):
        return now - timedelta(seconds=seconds_of(text))
    return moment_of(text, "2026-01-31T00:00:00Z, or 2h,")


def filter_of(
    letters: Sequence[str] = (),
    topic: str | None = None,
    table: str | None = None,
    reason: str | None = None,
    since: str | None = None,
    state: str | None = None,
) -> LetterFilter:
    """The filter that the options describe. Raises ValueError."""
    if state not in (None, *STATES):
        raise ValueError(f"--state {state!r} is not one of {', '.join(STATES)}")
    begin = None if since is None else parse_since(since, datetime.now(UTC))
    return LetterFilter(tuple(map(parse_place, letters)), topic, table, reason, begin, state)


@dataclass(frozen=True, slots=True)
class LetterIndex:
    """A pipeline's letters in the order of the log. A letter that is stored twice appears once.

    ``marks``: of each letter the last one, also of those that were removed since.
    """

    stored: tuple[Stored, ...]
    damage: tuple[str, ...]
    marks: Mapping[LetterId, Mark] = field(default_factory=dict)

    def pick(self, wanted: LetterFilter) -> tuple[Stored, ...]:
        """The letters that pass the filter."""
        return tuple(filter(wanted, self.stored))

    def at(self, source: TopicPartition, offset: int) -> Mapping[str | None, str]:
        """By target the state of the letter of a record. A letter that is gone has its mark's."""
        here = (source, offset)
        marked = {i: mark.state for i, mark in self.marks.items() if (i.source, i.offset) == here}
        stored = {each.letter.id: each.state for each in self.pick(LetterFilter(places=(here,)))}
        return {letter.target: state for letter, state in (marked | stored).items()}

    def places(self) -> frozenset[tuple[TopicPartition, int]]:
        """The places of the letters' records in the log."""
        return frozenset((s.letter.id.source, s.letter.id.offset) for s in self.stored)


def read_index(pipeline: PipelineConfig) -> LetterIndex:
    """Read the files of the state directory, and the topic if one is configured.

    Files are always read, because the configuration may have named them before. Needs the broker
    only for a topic. Raises Unreadable.
    """
    damage: list[str] = []
    letters: dict[LetterId, tuple[Letter, str]] = {}
    marks: dict[LetterId, Mark] = {}
    for item, store in _items(pipeline, damage):
        if item.id.pipeline != pipeline.name:
            continue
        if isinstance(item, Mark):
            marks[item.id] = max(item, marks.get(item.id, item), key=lambda mark: mark.when)
        else:
            letters[item.id] = (item, store)
    order = sorted(letters.values(), key=lambda pair: _order(pair[0].id))
    found = tuple(Stored(letter, store, marks.get(letter.id)) for letter, store in order)
    return LetterIndex(found, tuple(damage), marks)


def _items(pipeline: PipelineConfig, damage: list[str]) -> Iterator[tuple[Letter | Mark, str]]:
    name, section, folder = pipeline.name, pipeline.section, pipeline.state_dir
    try:
        yield from ((letter, FILES) for letter in read_files(folder, name, damage))
        yield from ((mark, FILES) for mark in read_marks(folder, name, damage))
        topic = section.dead_letter_topic
        if topic is not None:
            found = pipeline.topics().letters(topic).read(damage)
            yield from ((item, section.dead_letters) for item in found)
    except OSError as error:
        raise Unreadable(f"{error.filename}: {error.strerror or error}") from error
    except NotKept as error:
        raise Unreadable(str(error)) from error


def _order(letter: LetterId) -> tuple[TopicPartition, int, str]:
    return letter.source, letter.offset, letter.target or ""


def indexes(
    pipelines: Iterable[PipelineConfig], redact: Callable[[str], str]
) -> Iterator[LetterIndex]:
    """Each pipeline's letters. Damage is reported on standard error. Raises Unreadable."""
    for pipeline in pipelines:
        index = read_index(pipeline)
        for line in index.damage:
            print(f"binlogd: {redact(line)}", file=sys.stderr)
        yield index
