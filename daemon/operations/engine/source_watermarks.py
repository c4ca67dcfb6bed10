"""Finds out when a target holds all that its source's database showed at a moment.

A log has one order in each partition: that of the source. The first message whose change happened
after the moment, by the source's own clock, has everything before it that was visible at the
moment. So a target whose frontiers have reached these messages holds all of that. A message that
came before the moment proves nothing, and neither does the time at which it was written. Where a
reader of the source's log tells its position, that proves the same without a later message.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from changes.formats import TopicFormats, make_format
from changes.formats.engine.format import Format
from daemon.operations.engine.port import Look
from databases.base.errors import DatabaseRefused
from databases.base.log_end import NOT_ASKED, LogEnd, NoEnd, ReaderPosition
from databases.base.port import Moment
from offsets.position import TopicPartition
from offsets.snapshot import Snapshot
from settings.counted import counted
from sources.base.consumed import as_consumed, topics_format
from sources.base.port import Questions, Reader

SKEW_MS = 1000
"""A message must be later than the moment by more than this: a clock that is set back by less makes
no difference, and formats whose times have no fraction of a second lose nothing but that second."""

AT_ONCE = 20_000
"""Messages of a partition that are looked at in one call."""


@dataclass(frozen=True, slots=True)
class Passage:
    """How far a pipeline's log is known to have passed a moment of the database. JSON's values.

    ``after_ms``: the moment and the skew. ``log``: where the database's log was then: whichever a
    message is behind, it proves the same. ``log_read``: the same, for the position of who reads it.
    ``at``: of each partition where the search goes on. ``ends``: of those that have passed it, the
    first message that proves it, or where all before the moment ends. ``logged``: what proves it
    must have been written behind the moment, too: of a moment to come a statement that sets its own
    time would prove it before it is there.
    """

    after_ms: int
    at: Mapping[TopicPartition, int]
    ends: Mapping[TopicPartition, int] = field(default_factory=dict)
    assumed: bool = False
    """An end was not proved by a message: nothing came for as long as the configuration says."""
    log: LogEnd = NOT_ASKED
    log_read: LogEnd = NOT_ASKED
    logged: bool = False

    @property
    def waits_for(self) -> tuple[TopicPartition, ...]:
        """The partitions without a message after the moment."""
        return tuple(sorted(self.at.keys() - self.ends.keys()))

    def is_before(self, format_: Format, value: bytes | None, log_ms: int | None = None) -> bool:
        """Whether a message's change happened after the moment. ``log_ms``: when it was written."""
        if self.logged and log_ms is not None and log_ms <= self.after_ms:
            return False
        time = format_.source_ms(value)
        if time is not None and time > self.after_ms:
            return True
        place = None if isinstance(self.log, NoEnd) else format_.place(value)
        return place is not None and self.log.is_before(place)

    def document(self) -> dict[str, Any]:
        """As JSON keeps it."""
        at = {str(source): offset for source, offset in self.at.items()}
        ends = {str(source): offset for source, offset in self.ends.items()}
        return {"after_ms": self.after_ms, "at": at, "ends": ends, "assumed": self.assumed}

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Passage:
        """Read back what ``document`` gave."""
        at = {TopicPartition.parse(name): int(to) for name, to in document["at"].items()}
        ends = {TopicPartition.parse(name): int(to) for name, to in document["ends"].items()}
        return cls(int(document["after_ms"]), at, ends, bool(document["assumed"]))

    def waiting(self) -> str:
        """What is waited for, in one line."""
        moment = datetime.fromtimestamp(self.after_ms / 1000, UTC)
        return (
            f"waits for a change of after {moment:%H:%M:%S} UTC in {some(self.waits_for)}: an idle"
            " source needs a heartbeat"
        )


def passage(
    moment: Moment, ends: Mapping[TopicPartition, int], log_read: LogEnd = NOT_ASKED
) -> Passage:
    """A search that begins. ``ends``: the ends of the logs, queried before the moment."""
    return Passage(moment.unix_us // 1000 + SKEW_MS, dict(ends), log_read=log_read)


class LogMoments:
    """Looks into one pipeline's log for moments of its database. One thread's."""

    def __init__(
        self,
        format_: Format,
        questions: Questions,
        reader: Reader,
        sources: Collection[TopicPartition],
        position: Callable[[], ReaderPosition],
    ) -> None:
        """``sources``: the partitions that may hold the table. ``position``: of who writes them."""
        self._format = format_
        self._questions = questions
        self._reader = reader
        self.sources = sorted(sources)
        self._position = position

    def log_end(self, ask: Callable[[], LogEnd]) -> LogEnd:
        """The end of the database's log for ``passage``. ``ask`` queries the database, where there
        is a reader that tells its position. Raises DatabaseAway."""
        if not self._position():
            return NOT_ASKED
        try:
            return ask()
        except DatabaseRefused as error:
            return NoEnd(f"its position can't be read: {error}")

    def ends(self) -> dict[TopicPartition, int]:
        """Where the logs end now. Raises NotAnswered."""
        marks = self._questions.watermarks(self.sources)
        return {source: marks[source].high for source in self.sources}

    def ended_before(self, seconds: float) -> dict[TopicPartition, int]:
        """Where the logs ended so long ago, by the times at which messages came. Raises
        NotAnswered."""
        return self.ended_at(time.time_ns() // 1_000_000 - round(seconds * 1000))

    def ended_at(self, unix_ms: int) -> dict[TopicPartition, int]:
        """Where the logs ended then, by the times at which messages came; later than now: where
        they end. Raises NotAnswered."""
        ends = self.ends()
        found = self._questions.at_time(self.sources, unix_ms)
        return {source: min(end, found.get(source, end)) for source, end in ends.items()}

    def followed(self, passage: Passage, idle: bool = False) -> Passage:
        """Go on with a search. ``idle``: what has no message behind the moment ends where it is.

        Raises NotAnswered, LogUnreadable, LogGone.
        """
        committed = self._questions.committed_ends(self.sources)
        at, ends, assumed = dict(passage.at), dict(passage.ends), passage.assumed
        for source in passage.waits_for:
            at[source], found = self._first_after(source, at[source], committed[source], passage)
            if found:
                ends[source] = at[source]
        found_ = replace(passage, at=at, ends=ends)
        if found_.waits_for and self._was_read(passage):
            # Behind the position: all that is before it is written. A transaction is over in one
            # partition, the position's, before it is in another: what is written must be over.
            written, committed = self.ends(), self._questions.committed_ends(self.sources)
            over = [source for source in found_.waits_for if committed[source] >= written[source]]
            ends |= {source: written[source] for source in over}
        elif idle:
            still = [source for source in found_.waits_for if at[source] >= committed[source]]
            ends |= {source: at[source] for source in still}
            assumed = assumed or bool(still)
        return replace(passage, at=at, ends=ends, assumed=assumed)

    def _was_read(self, passage: Passage) -> bool:
        if isinstance(passage.log_read, NoEnd):
            return False
        return passage.log_read.was_read(self._position())

    def _first_after(
        self, source: TopicPartition, at: int, end: int, passage: Passage
    ) -> tuple[int, bool]:
        """The first message after the moment, or up to where there is none yet."""
        last = min(end, at + AT_ONCE) - 1
        if last < at:
            return at, False
        format_ = topics_format(self._format, source.topic)
        for record in self._reader.read(source, at, last):
            value = as_consumed(format_, source.topic, record)
            if passage.is_before(format_, value, record.time_ms):
                return record.offset, True
        return last + 1, False


def moments_of(look: Look, pipeline: str, snapshot: Snapshot, *targets: str) -> LogMoments:
    """Of these targets: where nothing is known of one, in all partitions. Raises NotAnswered,
    TopicMissing."""
    section, source = look.config.pipeline[pipeline], look.source(pipeline)
    topics = TopicFormats(snapshot.formats)
    format_ = make_format(section.format, look.config.format_options(pipeline), topics)
    questions = source.questions()
    known = all(_known(snapshot, target) for target in targets)
    held = {lane.topic for each in targets for lane in snapshot.targets[each].hwms} if known else ()
    sources = questions.partitions(sorted(held) if held else sorted(source.topic_ids()))
    position = partial(look.reader_position, pipeline)
    return LogMoments(format_, questions, source.reader(), sources, position)


def frontiers_of(snapshot: Snapshot) -> dict[TopicPartition, int]:
    """Below which offset each partition's messages are written."""
    return {source: state.frontier for source, state in snapshot.partitions.items()}


def _known(snapshot: Snapshot, target: str) -> bool:
    return target in snapshot.targets and bool(snapshot.targets[target].hwms)


def behind(
    ends: Mapping[TopicPartition, int], frontiers: Mapping[TopicPartition, int]
) -> list[TopicPartition]:
    """The partitions whose messages below these ends are not all written."""
    return [source for source, end in sorted(ends.items()) if frontiers.get(source, 0) < end]


def some(sources: Iterable[TopicPartition]) -> str:
    """The first few by name, and how many others."""
    names = [str(source) for source in sources]
    more = f" and {counted(len(names) - 3, 'other')}" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more
