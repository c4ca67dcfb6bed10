"""A source that is a few numbers: what commands decide is tested without a broker."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

import pytest

from actors.contract.ports import RecordSource
from offsets.position import TopicPartition
from offsets.recovery import Watermarks
from offsets.snapshot import PartitionState, Snapshot
from offsets.store import Loaded
from sources import opening
from sources.base.log_figures import KeptRecords, LogEnds
from sources.base.port import (
    GroupMember,
    LogGone,
    LogRecord,
    NotAnswered,
    Outgoing,
    Start,
)


@dataclass
class FakeSource:
    """Logs by their ends, records where a test has some, a group by its commits and members.

    It is its own ``Questions``, ``Reader``, ``Appender`` and store of the group's commit. ``away``:
    nobody is there to answer. ``append_error``: an appender can't be had. ``commit_error``: what a
    commit of appended records ends with, though they are in the log. ``overtaking``: what another
    producer writes into the first log before the next append.
    """

    logs: dict[TopicPartition, Watermarks]
    commits: dict[TopicPartition, int] = field(default_factory=dict)
    group_members: list[GroupMember] = field(default_factory=list)
    records: dict[TopicPartition, list[LogRecord]] = field(default_factory=dict)
    times: Mapping[TopicPartition, int] = field(default_factory=dict)
    compact: frozenset[str] = frozenset()
    away: bool = False
    append_error: Exception | None = None
    commit_error: Exception | None = None
    overtaking: list[bytes] = field(default_factory=list)
    name: str = "fake-commit"

    def opened(self, monkeypatch: pytest.MonkeyPatch) -> FakeSource:
        """From now on it is what ``open_source`` gives, whatever the pipeline."""
        monkeypatch.setitem(opening.ADAPTERS, "kafka", lambda config, pipeline: self)
        return self

    def produce(self, *values: bytes) -> None:
        """Append to the first log, without key."""
        source = next(iter(self.logs))
        for value in values:
            self._put(Outgoing(source.topic, source.partition, None, value, ()))

    # --- Source

    def topic_ids(self) -> dict[str, str]:
        """One id for each topic."""
        if self.away:
            raise NotAnswered("nobody is there", away=True)
        return {source.topic: f"id-of-{source.topic}" for source in self.logs}

    def identity(self) -> str:
        """Always the same."""
        return "group@fake"

    def ends(self) -> dict[TopicPartition, int]:
        """Where the logs end."""
        return {source: marks.high for source, marks in self.logs.items()}

    def questions(self) -> FakeSource:
        """Itself."""
        if self.away:
            raise NotAnswered("nobody is there", away=True)
        return self

    def members(self) -> list[GroupMember]:
        """Those that the test named."""
        return self.group_members

    def own_instance(self) -> str | None:
        """None: no daemon has been a member."""
        return None

    def group_commit(self) -> FakeSource:
        """Itself."""
        return self

    def probe(self) -> FakeProbe:
        """The ends."""
        return FakeProbe(self)

    def problems(self) -> Iterator[tuple[str, str]]:
        """None."""
        return iter(())

    def reader(self, uncommitted: bool = False) -> FakeSource:
        """Itself."""
        return self

    def appender(self) -> FakeSource:
        """Itself."""
        if self.append_error is not None:
            raise self.append_error
        return self

    def consume(self, start: Start) -> RecordSource:
        """No test of a command consumes."""
        raise NotImplementedError

    # --- Questions

    def partitions(self, topics: Collection[str]) -> list[TopicPartition]:
        """Those of the logs."""
        return [source for source in self.logs if source.topic in topics]

    def begins(self, sources: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """The low ends."""
        return {source: self.logs[source].low for source in sources}

    def watermarks(self, sources: Sequence[TopicPartition]) -> dict[TopicPartition, Watermarks]:
        """Both ends."""
        return {source: self.logs[source] for source in sources}

    def committed_ends(self, sources: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """No transaction is open."""
        return {source: self.logs[source].high for source in sources}

    def at_time(self, sources: Sequence[TopicPartition], unix_ms: int) -> dict[TopicPartition, int]:
        """What the test says, whatever the time."""
        return {source: self.times[source] for source in sources if source in self.times}

    def unreadable(self, topics: Collection[str]) -> list[str]:
        """None."""
        return []

    def compacted(self, topics: Collection[str]) -> dict[str, str]:
        """Those that the test named."""
        return dict.fromkeys(self.compact & frozenset(topics), "is compacted")

    # --- Reader

    def read(self, source: TopicPartition, first: int, last: int) -> Iterator[LogRecord]:
        """The test's records."""
        if self.logs[source].low > first:
            raise LogGone(f"{source}: the log begins at {self.logs[source].low}")
        return (each for each in self.records.get(source, ()) if first <= each.offset <= last)

    def record(self, source: TopicPartition, offset: int) -> LogRecord | None:
        """One of them."""
        return next(self.read(source, offset, offset), None)

    # --- Appender

    def append(
        self,
        records: Sequence[Outgoing],
        check: Callable[[Sequence[int]], bool],
        marks: Callable[[Sequence[int]], Sequence[Outgoing]],
    ) -> list[int] | None:
        """Into the logs at once; taken back where the check says no. Their offsets stay used."""
        others, self.overtaking = self.overtaking, []
        self.produce(*others)
        offsets = [self._put(record) for record in records]
        if not check(offsets):
            for record, offset in zip(records, offsets, strict=True):
                log = self.records[_place(record)]
                log[:] = [each for each in log if each.offset != offset]
            return None
        assert not marks(offsets), "this source has no topic of letters"
        if self.commit_error is not None:
            raise self.commit_error
        return offsets

    def _put(self, record: Outgoing) -> int:
        source, headers = _place(record), []
        for name, value in record.headers:
            headers.append((name, value.encode() if isinstance(value, str) else value))
        low, offset = self.logs[source].low, self.logs[source].high
        found = LogRecord(offset, record.key, record.value, tuple(headers), 1_700_000_000_000)
        self.records.setdefault(source, []).append(found)
        self.logs[source] = Watermarks(low, offset + 1)
        return offset

    # --- OffsetStore: the group's commit

    def start(self) -> None:
        """Nothing to open."""

    def get(self) -> Loaded:
        """The commits as a snapshot."""
        frontiers = {source: PartitionState(at) for source, at in self.commits.items()}
        return Loaded(Snapshot("", "", {}, frontiers) if frontiers else None)

    def set(self, batch: Snapshot) -> Future[None]:
        """Keep the frontiers."""
        self.commits |= {source: state.frontier for source, state in batch.partitions.items()}
        done: Future[None] = Future()
        done.set_result(None)
        return done

    def stop(self) -> None:
        """Nothing to close."""


@dataclass
class FakeProbe:
    """See ``LogProbe``."""

    source: FakeSource

    def ends(self) -> LogEnds:
        """Of all logs, with every transaction ended."""
        return LogEnds(self.source.ends())

    def kept(self) -> KeptRecords:
        """For ever."""
        return KeptRecords(self.source.questions().begins([*self.source.logs]))


def _place(record: Outgoing) -> TopicPartition:
    assert record.partition is not None
    return TopicPartition(record.topic, record.partition)
