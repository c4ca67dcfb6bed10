"""The load's ``LoadLog`` over a pipeline's source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from changes.formats import TopicFormats, make_format
from changes.formats.engine.format import Format
from changes.model.places import Place
from daemon.config.config import formats
from daemon.operations.engine.port import JobAway, Look
from daemon.operations.engine.source_watermarks import LogMoments, Passage
from databases.base.log_end import LogEnd, ReaderPosition
from offsets.position import TopicPartition
from sources.base.consumed import as_consumed, topics_format
from sources.base.port import LogGone, NotAnswered

SAMPLE = 200
"""Messages at the end of a partition whose positions are looked at."""


class PipelineLog:
    """See ``ports.LoadLog``. One thread's."""

    def __init__(self, look: Look, pipeline: str) -> None:
        self._look = look
        self._pipeline = pipeline
        self._source = look.source(pipeline)

    def partitions(self) -> Sequence[TopicPartition]:
        """See ``LoadLog``."""
        return self._source.questions().partitions(sorted(self._source.topic_ids()))

    def ends(self, sources: Sequence[TopicPartition]) -> Mapping[TopicPartition, int]:
        """See ``LoadLog``."""
        marks = self._source.questions().watermarks(sources)
        return {source: marks[source].high for source in sources}

    def begins(self, sources: Sequence[TopicPartition]) -> Mapping[TopicPartition, int]:
        """See ``LoadLog``."""
        return self._source.questions().begins(sources)

    def places(self, sources: Sequence[TopicPartition]) -> Sequence[Place]:
        """See ``LoadLog``."""
        questions = self._source.questions()
        begins, ends = questions.begins(sources), questions.committed_ends(sources)
        firsts = {source: max(begins[source], end - SAMPLE) for source, end in ends.items()}
        found: list[Place] = []
        for source, first in firsts.items():
            if first < ends[source]:
                found += self._places(source, first, ends[source] - 1)
        return found

    def _places(self, source: TopicPartition, first: int, last: int) -> Iterator[Place]:
        format_ = topics_format(self._format(), source.topic)
        try:
            for record in self._source.reader().read(source, first, last):
                consumed = as_consumed(format_, source.topic, record)
                if (place := format_.place(consumed)) is not None:
                    yield place
        except LogGone:
            return  # it was cut meanwhile: what others tell has to do

    def position(self) -> ReaderPosition:
        """See ``LoadLog``."""
        return self._look.reader_position(self._pipeline)

    def passed(
        self, scanned: Mapping[TopicPartition, int], after_ms: int, log: LogEnd
    ) -> tuple[Mapping[TopicPartition, int], Mapping[TopicPartition, int]]:
        """See ``LoadLog``. What the log has lost meanwhile is passed over: a later message proves
        the same."""
        try:
            passage = Passage(after_ms, dict(scanned), log=log, log_read=log)
            found = self._moments(list(scanned)).followed(passage)
        except LogGone as error:
            begins = self._source.questions().begins(sorted(scanned))
            left = {source: max(at, begins[source]) for source, at in scanned.items()}
            if left == dict(scanned):
                raise JobAway(str(error)) from error
            return {}, left
        except NotAnswered as error:
            raise JobAway(str(error)) from error
        return found.ends, found.at

    def _moments(self, sources: list[TopicPartition]) -> LogMoments:
        source = self._source
        return LogMoments(
            self._format(), source.questions(), source.reader(), sources, self.position
        )

    def _format(self) -> Format:
        topics = TopicFormats(self._look.snapshot(self._pipeline).formats)
        return make_format(*formats(self._look.config)(self._pipeline), topics)
