"""Decides where assigned partitions are read from, by file, broker and log.

The rule itself is pure (``offsets/recovery.py``). Runs on the fetcher's thread when partitions are
assigned. Its queries have clients of their own, because the group's consumer is busy with the
assignment.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import Any

import structlog

from actors.contract.messages import Assigned
from actors.runtime.backoff import BackOff
from offsets.parts import Running
from offsets.position import LogEpoch, TopicPartition
from offsets.recovery import (
    PositionError,
    PositionUnknown,
    StartAt,
    Watermarks,
    check_topic_ids,
    start_position,
)
from offsets.snapshot import PartitionState, Snapshot
from offsets.store import Loaded, StoreError
from sources.base.configuration import ReadingSection
from sources.base.port import NotAnswered
from sources.kafka.admin import Admin
from sources.kafka.answers import asking
from sources.kafka.commit_store import group_commits
from sources.kafka.log_reader import check_logs

ASSIGN_WITHIN_S = 60.0
"""The limit for an assignment, from the first query to the start of the last attempt. That attempt
makes up to eight queries, each for a quarter of this time at most. The sum must stay well below
``max.poll.interval.ms`` (5 minutes), or the group removes the member. Shorter: a broker that
restarts ends the pipeline."""


class PositionResolver:
    """Decides the start of each assigned partition. Only the fetcher's thread calls it.

    The offset file is read at each assignment, because it has changed since the last one. A
    partition that this process has read before never gets the configured start again, forced or
    not.
    """

    def __init__(
        self,
        settings: Mapping[str, Any],
        group: str,
        pipeline: ReadingSection,
        load: Callable[[], Loaded],
        apply_force: bool,
        within_s: float = ASSIGN_WITHIN_S,
        check_topics: Callable[[Collection[str]], Mapping[str, str]] | None = None,
        begun: Collection[str] | None = None,
        there: Collection[TopicPartition] | None = None,
    ) -> None:
        """``apply_force``: the configuration's force text was not carried out yet.

        ``within_s``: how long a broker that does not answer is queried again. ``check_topics``: see
        ``TopicWatch.check``. ``begun``: the topics that the configured start is for
        (``topics_begun``); ``there``: the partitions that a forced one is for. None: all.
        """
        self._check_topics = check_topics
        self._begun = begun
        self._there = there
        self.settings = settings
        self.group = group
        self._pipeline = pipeline
        self._load = load
        self.apply_force = apply_force
        self._back_off = BackOff(within_s)
        self._answer_s = within_s / 4
        self._resolved: set[TopicPartition] = set()

    def __call__(self, sources: list[TopicPartition]) -> Assigned:
        """Read the file, the broker's commits and the logs, and decide.

        Raises PositionError. A broker that does not answer is queried again for a while; then the
        error is PositionUnknown, because a partition must not be read from a guess.
        """
        if not sources:
            return Assigned({}, {}, {})
        passing = (NotAnswered, StoreError)
        try:
            return self._back_off.call(lambda: self._asked(sources), passing, _tell)
        except passing as error:
            away = isinstance(error, NotAnswered) and error.away
            kind = PositionUnknown if away else PositionError
            of = f"{sources[0]}: " if len(sources) == 1 else ""
            raise kind(f"{of}the start can't be decided: {error}") from error

    def _asked(self, sources: list[TopicPartition]) -> Assigned:
        with asking():  # the log check raises the client's errors
            return self._resolve(sources)

    def _resolve(self, sources: list[TopicPartition]) -> Assigned:
        ids: Mapping[str, str] = {}
        if self._check_topics is not None:
            ids = self._check_topics({source.topic for source in sources})
            sources = [source for source in sources if source.topic in ids]
            if not sources:
                return Assigned({}, {}, {})
        questions = Admin(self.settings, self._answer_s)
        logs = questions.watermarks(sources)
        commits = group_commits(self.settings, self.group, sources, self._answer_s)
        configured = self._configured(questions, sources)
        recorded = self._load().snapshot or Snapshot("", "")
        check_topic_ids(recorded, ids)  # another member may have recorded them since the start
        read = self._topics_read(questions, sources, recorded, commits)
        forced = {source for source in sources if self._is_forced(source)}
        starts = {
            source: self._decide(
                source, recorded, commits, logs[source], configured, read, source in forced
            )
            for source in sources
        }
        epochs = _log_epochs(starts, recorded)
        # If retention deleted all below a marker, there is nothing left to compare.
        there = {s: log for s, log in epochs.items() if log.below >= logs[s].low}
        check_logs(self.settings, there, self._answer_s)
        self._resolved |= set(sources)
        # A forced start declares the targets right as they are.
        unforced = {source: at for source, at in starts.items() if source not in forced}
        return Assigned(
            starts,
            logs,
            confirmed={source: commits.get(source) for source in sources},
            epochs=epochs,
            at_frontier=_at_frontier(starts, recorded, commits),
            running=_running(starts, recorded),
            unrecorded=frozenset(unforced.keys() - recorded.partitions.keys() - commits.keys()),
            adopted=adopted(unforced, recorded, commits.keys(), logs),
            counts=self._counts(questions, sources),
            topic_ids=ids,
        )

    def _is_forced(self, source: TopicPartition) -> bool:
        """Whether the configuration overrules what is recorded: not of a partition that came after
        the start, whose first messages a forced "latest" would skip."""
        was_there = self._there is None or source in self._there
        return self.apply_force and source not in self._resolved and was_there

    def _counts(self, questions: Admin, sources: list[TopicPartition]) -> dict[str, int]:
        """How many partitions the topics have, where it matters to which one a key belongs."""
        if not self._pipeline.format_options().by_key:
            return {}
        topics = {source.topic for source in sources}
        there = questions.partitions(topics, missing_too=True)
        return dict(Counter(source.topic for source in there))

    def _decide(
        self,
        source: TopicPartition,
        recorded: Snapshot,
        commits: Mapping[TopicPartition, int],
        log: Watermarks,
        configured: Mapping[TopicPartition, int],
        read: frozenset[str],
        forced: bool,
    ) -> int:
        start = start_position(
            source,
            recorded=recorded.partitions.get(source),
            committed=commits.get(source),
            log=log,
            configured=self._pipeline.start.start_at,
            configured_offset=configured.get(source),
            forced=forced,
            topic_is_read=source.topic in read,
            topic_is_new=self._begun is not None and source.topic not in self._begun,
        )
        said = structlog.get_logger().bind(actor="fetcher-0")
        fields = {"source": str(source), "offset": start.offset, "origin": start.origin}
        if start.remark is None:
            said.info("start_position", **fields)
        else:
            said.warning("start_position", **fields, remark=start.remark)
        return start.offset

    def _topics_read(
        self,
        questions: Admin,
        sources: list[TopicPartition],
        recorded: Snapshot,
        commits: Mapping[TopicPartition, int],
    ) -> frozenset[str]:
        """The topics of which this member, or the group, has read another partition.

        The group is queried only if a partition would start at the configured place and that is not
        the log's beginning: then the answer decides between skipping and reading.
        """
        known = {source.topic for source in (*recorded.partitions, *commits)}
        unknown = {s.topic for s in sources if s not in recorded.partitions and s not in commits}
        doubtful = sorted(unknown - known)
        if not doubtful or self._pipeline.start.start_at is StartAt.EARLIEST:
            return frozenset(known)
        others = questions.partitions(doubtful)
        found = group_commits(self.settings, self.group, others, self._answer_s)
        return frozenset(known | {source.topic for source in found})

    def _configured(
        self, questions: Admin, sources: list[TopicPartition]
    ) -> dict[TopicPartition, int]:
        start = self._pipeline.start
        match start.start_at:
            case StartAt.OFFSET:
                return {TopicPartition.parse(name): at for name, at in start.offsets.items()}
            case StartAt.TIMESTAMP:
                assert start.timestamp is not None
                return questions.at_time(sources, int(start.timestamp.timestamp() * 1000))
            case _:
                return {}


def adopted(
    starts: Mapping[TopicPartition, int],
    recorded: Snapshot,
    committed: Collection[TopicPartition],
    logs: Mapping[TopicPartition, Watermarks],
) -> dict[TopicPartition, int]:
    """Those whose beginning in the log the group has read for nobody knows which tables, each with
    where it was adopted: it stays recorded.

    A member that adopted none of the partitions that it recorded knows the tables of the others,
    too: its group wrote them. What comes to one that has adopted some is as little known.
    """
    states = recorded.partitions
    if states and all(state.adopted is None for state in states.values()):
        return {}
    found = {s: at for s, at in starts.items() if s in committed and at > logs[s].low}
    found = {s: at for s, at in found.items() if s not in states}
    kept = {s: states[s].adopted for s in starts if s in states}
    return found | {s: at for s, at in kept.items() if at is not None}


def _log_epochs(
    starts: Mapping[TopicPartition, int], recorded: Snapshot
) -> dict[TopicPartition, LogEpoch]:
    """The recorded leader epochs of those partitions that start at their frontier."""
    return {
        source: state.log
        for source, at in starts.items()
        if (state := recorded.partitions.get(source)) is not None
        and state.log is not None
        and state.frontier == at
    }


def _at_frontier(
    starts: Mapping[TopicPartition, int], recorded: Snapshot, commits: Mapping[TopicPartition, int]
) -> frozenset[TopicPartition]:
    return frozenset(
        source
        for source, at in starts.items()
        if is_frontier(recorded.partitions.get(source), commits.get(source), at)
    )


def _running(
    starts: Mapping[TopicPartition, int], recorded: Snapshot
) -> dict[TopicPartition, Running]:
    """The producer's numbers that were recorded at these starts."""
    return {
        source: state.running
        for source, at in starts.items()
        if (state := recorded.partitions.get(source)) is not None
        and state.running is not None
        and state.running.at == at
    }


def is_frontier(recorded: PartitionState | None, committed: int | None, at: int) -> bool:
    """Whether everything below a start is known to be applied. Never if an operator chose it."""
    if recorded is not None and recorded.reset:
        return False
    return at == committed or (recorded is not None and at == recorded.frontier)


def _tell(error: Exception, attempt: int) -> None:
    log = structlog.get_logger().bind(actor="fetcher-0")
    log.warning("start_position_not_known", reason=str(error), attempt=attempt)
