"""The load's ``Log`` over a pipeline's source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from changes.formats.auto import make_format
from changes.formats.recognise import TopicFormats
from daemon.jobs.moments import LogMoments, Passage
from daemon.jobs.port import JobAway, Look
from daemon.source.port import LogGone, NotAnswered
from offsets.position import TopicPartition


class PipelineLog:
    """See ``ports.Log``. One thread's."""

    def __init__(self, look: Look, pipeline: str) -> None:
        self._look = look
        self._pipeline = pipeline
        self._source = look.source(pipeline)

    def partitions(self) -> Sequence[TopicPartition]:
        """See ``Log``."""
        return self._source.questions().partitions(sorted(self._source.topic_ids()))

    def ends(self, sources: Sequence[TopicPartition]) -> Mapping[TopicPartition, int]:
        """See ``Log``."""
        marks = self._source.questions().watermarks(sources)
        return {source: marks[source].high for source in sources}

    def begins(self, sources: Sequence[TopicPartition]) -> Mapping[TopicPartition, int]:
        """See ``Log``."""
        return self._source.questions().begins(sources)

    def passed(
        self, scanned: Mapping[TopicPartition, int], after_ms: int
    ) -> tuple[Mapping[TopicPartition, int], Mapping[TopicPartition, int]]:
        """See ``Log``. What the log has lost meanwhile is passed over: a later message proves the
        same."""
        try:
            found = self._moments(list(scanned)).followed(Passage(after_ms, dict(scanned)))
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
        section = self._look.config.pipeline[self._pipeline]
        topics = TopicFormats(self._look.snapshot(self._pipeline).formats)
        format_ = make_format(section.format, section.format_options(), topics)
        source = self._source
        return LogMoments(format_, source.questions(), source.reader(), sources)
