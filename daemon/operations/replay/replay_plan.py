"""Plans a replay: which letters may be appended, by their content and what came after them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from changes.formats.engine.format import Chunked, Format
from daemon.config.pipeline_config import PipelineConfig
from daemon.operations.replay.conflicts import (
    Candidate,
    ConflictFinder,
    Letters,
    by_source,
    doubt_peers,
    read_now,
)
from daemon.operations.replay.moved import doubt_added, refuse_moved
from daemon.state.command_schemas import CommandSchemas
from daemon.state.control import ControlError
from daemon.state.dead_letters.index import LetterIndex, Stored
from daemon.state.offset_transfer import format_of
from offsets.key_partitioning import UNKNOWN
from offsets.position import TopicPartition
from offsets.store import StoreError
from sources.base.consumed import topics_format
from sources.base.port import LogGone, LogUnreadable, NotAnswered, Questions
from sources.base.topic_selection import TopicSelection


@dataclass(frozen=True, slots=True)
class ReplayPlan:
    """``letters``: by place, because a record may have letters of several targets. ``ends``: how
    far each partition was examined."""

    candidates: tuple[Candidate, ...]
    letters: Mapping[str, tuple[Stored, ...]]
    ends: Mapping[TopicPartition, int]


class Planner:
    """Plans for one pipeline, with its current format and routes."""

    def __init__(
        self,
        pipeline: PipelineConfig,
        others: Mapping[str, TopicSelection],
        index: LetterIndex,
        schemas: CommandSchemas | None,
    ) -> None:
        """``others``: what the other pipelines read, by name. ``schemas``: None where its records
        name none."""
        self._schemas = schemas
        self._pipeline = pipeline
        self._others = others
        self._topics = pipeline.selection
        self._source = pipeline.source()
        self._router = pipeline.router()
        self._letters: Letters = frozenset(
            (s.letter.id.source, s.letter.id.offset, s.letter.id.target) for s in index.stored
        )

    def _format(self) -> Format:
        """A new format for each pass, because a format may remember what it has read."""
        try:
            registry = None if self._schemas is None else self._schemas.registry
            return format_of(self._pipeline, registry)
        except StoreError as error:
            raise ControlError(str(error)) from error

    def plan(self, stored: Sequence[Stored]) -> ReplayPlan:
        """Examine the letters and everything that came after them. Raises ControlError."""
        letters: dict[str, tuple[Stored, ...]] = {}
        for each in stored:
            place = each.letter.id.place
            letters[place] = (*letters.get(place, ()), each)
        candidates = [self._candidate(mine) for mine in letters.values()]
        try:
            ends = self._look(self._source.questions(), candidates)
        except NotAnswered as error:
            raise ControlError(f"the broker can't be queried: {error}") from error
        except (LogGone, LogUnreadable) as error:
            raise ControlError(str(error)) from error
        for candidate in candidates:
            if candidate.replayed_at:
                at = ", ".join(map(str, candidate.replayed_at))
                candidate.doubts.insert(0, f"it was replayed already: offset {at} has it again")
        doubt_peers(candidates)
        return ReplayPlan(tuple(candidates), letters, ends)

    def overtaken(
        self,
        candidates: Iterable[Candidate],
        ends: Mapping[TopicPartition, int],
        places: Mapping[TopicPartition, Sequence[int]],
    ) -> list[str]:
        """Conflicts since the plan was made, up to the offsets that the records have now.

        ``places``: by partition, the offsets of all records of this replay. Open transactions count
        as if they were committed. Raises LogGone, LogUnreadable.
        """
        reader = self._source.reader(uncommitted=True)
        found: list[str] = []
        for source, mine in by_source(candidates).items():
            fresh = [Candidate(source, c.record, c.keys) for c in mine]
            finder = self._finder(source, fresh)
            last = max(places[source]) - 1
            if last >= ends[source]:
                for record in reader.read(source, ends[source], last):
                    if record.offset not in places[source]:
                        finder.examine(record)
            finder.finish()
            found += [f"{c.place}: {doubt}" for c in fresh for doubt in c.doubts]
        return found

    def _candidate(self, letters: Sequence[Stored]) -> Candidate:
        letter = letters[0].letter
        format_ = self._format()
        own = topics_format(format_, letter.id.source.topic)
        if isinstance(own, Chunked):
            candidate = Candidate(letter.id.source, letter.record)
            candidate.problems.append(
                f"{own.name} numbers its messages, so one that is appended again is dropped. "
                "Its table can be read again: binlogd offsets reset"
            )
            return candidate
        whole = letter.message(format_, whole=True)
        if missing := self._lacking(whole):
            return Candidate(letter.id.source, letter.record, problems=[*missing])
        candidate = read_now(format_, self._router, letter.id.source, letter.record, whole)
        if not self._topics.reads(letter.id.source.topic):
            candidate.problems.append("the pipeline does not read its topic any more")
        if not letter.in_log:
            candidate.doubt("the log had lost it already: its key and headers are not known")
        for mark in (each.mark for each in letters):
            if mark is not None and mark.at is not None:  # a discarded one may be replayed
                candidate.doubts.insert(0, f"it was replayed already, as {mark.at}")
                break
        return candidate

    def _lacking(self, message: bytes | None) -> Sequence[str]:
        """Have the schemas that a message needs; why they can't be had."""
        return () if self._schemas is None else self._schemas.fetch([message])

    def _finder(self, source: TopicPartition, candidates: Iterable[Candidate]) -> ConflictFinder:
        return ConflictFinder(
            self._format(), self._router, source, candidates, self._letters, self._lacking
        )

    def _look(
        self, questions: Questions, candidates: Sequence[Candidate]
    ) -> dict[TopicPartition, int]:
        sources = by_source(candidates)
        if not sources:
            return {}
        self._doubt_neighbours(sources)
        self._look_for_moved(questions, candidates)
        lows = questions.begins(list(sources))
        ends = questions.committed_ends(list(sources))
        holed = questions.compacted({source.topic for source in sources})
        for source, mine in sources.items():
            low, end = lows[source], ends[source]
            for candidate in mine:
                if candidate.record.offset + 1 < low:
                    candidate.doubt(f"the log begins at {low}: what came in between is unknown")
                if candidate.record.offset >= end:
                    candidate.doubt(f"the log ends at {end}: it was cut, or is another one")
                if (said := holed.get(source.topic)) is not None:
                    candidate.doubt(f"the topic {said}: records in between may be missing")
            self._examine_all(source, mine, max(low, mine[0].record.offset), end)
        return ends

    def _look_for_moved(self, questions: Questions, candidates: Sequence[Candidate]) -> None:
        """Where a key has one partition: that may be another one by now."""
        partitioner = self._pipeline.section.partitioner
        if partitioner is None:
            return
        there = questions.partitions({candidate.source.topic for candidate in candidates})
        if partitioner != UNKNOWN:
            refuse_moved(candidates, partitioner, Counter(source.topic for source in there))
            return
        lows, ends = questions.begins(there), questions.committed_ends(there)
        reader = self._source.reader()
        firsts: dict[TopicPartition, int | None] = {}
        for source in (s for s in there if lows[s] < ends[s]):
            for record in reader.read(source, lows[source], ends[source] - 1):
                firsts[source] = record.time_ms
                break
        doubt_added(candidates, firsts)

    def _examine_all(
        self, source: TopicPartition, mine: Sequence[Candidate], first: int, end: int
    ) -> None:
        """Read a partition from its first letter on."""
        finder = self._finder(source, mine)
        here = {candidate.record.offset: candidate for candidate in mine}
        if first < end:
            for record in self._source.reader().read(source, first, end - 1):
                candidate = here.get(record.offset)
                if candidate is not None and candidate.record.value != record.value:
                    candidate.doubt("the log has another record in its place: it was recreated")
                finder.examine(record)
        finder.finish()

    def _doubt_neighbours(self, sources: Mapping[TopicPartition, Sequence[Candidate]]) -> None:
        for name, other in self._others.items():
            for source, mine in sources.items():
                if other.reads(source.topic):
                    for candidate in mine:
                        candidate.doubt(f"pipeline {name} reads the topic, too, and gets it again")
