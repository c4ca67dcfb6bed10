"""The port to a pipeline's source: logs that are read as a group.

A log is a sequence of records with growing 64-bit offsets. A topic has one or more of them, its
partitions. An adapter translates a source's client into these types, and its errors into the ones
here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from actors.contract.ports import RecordSource
from offsets.position import TopicPartition
from offsets.recovery import Watermarks
from offsets.snapshot import Snapshot
from offsets.store import Loaded, OffsetStore
from sources.base.log_figures import KeptRecords, LogEnds

# The port's part for appending records to a log in transactions; only a replay uses it.

Header = tuple[str, str | bytes | None]


class AppendFailed(Exception):
    """Nothing was appended: one line."""


class OutcomeUnknown(AppendFailed):
    """The broker did not say whether the records were appended. The log shows it later."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"{reason}: whether the records were appended is not known; the next run finds out"
        )


class AppendRefused(Exception):
    """The pipeline's settings make an append unsafe: one line. Nothing was sent to the broker."""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A record for a partition. ``partition`` None: the broker's client chooses one."""

    topic: str
    partition: int | None
    key: bytes | None
    value: bytes | None
    headers: Sequence[Header]


class Appender(Protocol):
    """Appends for one pipeline. One thread's. A second one fences the first."""

    def append(
        self,
        records: Sequence[Outgoing],
        check: Callable[[Sequence[int]], bool],
        marks: Callable[[Sequence[int]], Sequence[Outgoing]],
    ) -> list[int] | None:
        """Append all records or none. Returns their offsets, or None when ``check`` said no.

        ``check`` gets the offsets that the records will have. ``marks`` returns further records
        for the same transaction. Raises AppendFailed, OutcomeUnknown, and what ``check`` raises.
        """
        ...


class TopicMissing(Exception):
    """A configured topic does not exist."""


class NotAnswered(Exception):
    """The broker did not answer: one line. ``away``: nobody was there; otherwise it refused.
    ``settling``: the subject appeared a moment ago, and may be known soon."""

    def __init__(self, reason: str, away: bool, settling: bool = False) -> None:
        super().__init__(reason)
        self.away = away
        self.settling = settling


class NotAllowed(NotAnswered):
    """The broker refused because its user lacks a right, which the line names."""


class LogUnreadable(Exception):
    """The broker does not return the records now: one line. It may later."""


class LogGone(Exception):
    """The log does not hold the stretch any more: one line."""


class LogRecord(NamedTuple):
    """A record as the log has it. ``time_ms`` is Unix time in milliseconds."""

    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    time_ms: int | None


@dataclass(frozen=True, slots=True)
class GroupMember:
    """A member of a group. ``instance_id``: of a static member, else None."""

    client_id: str
    host: str
    instance_id: str | None


class Questions(Protocol):
    """Queries about logs. For one thread. Each raises NotAnswered."""

    def partitions(self, topics: Collection[str]) -> list[TopicPartition]:
        """All partitions of the topics. One that is not there is an error."""
        ...

    def begins(self, sources: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """Where each log begins."""
        ...

    def watermarks(self, sources: Sequence[TopicPartition]) -> dict[TopicPartition, Watermarks]:
        """Where each log begins and ends."""
        ...

    def committed_ends(self, sources: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """The end of what is committed: below it no transaction is open."""
        ...

    def at_time(self, sources: Sequence[TopicPartition], unix_ms: int) -> dict[TopicPartition, int]:
        """The first offset at that time or later, for logs that have one."""
        ...

    def unreadable(self, topics: Collection[str]) -> list[str]:
        """The topics that the user may describe, but not read, as far as the broker tells."""
        ...

    def compacted(self, topics: Collection[str]) -> Mapping[str, str]:
        """The compacted topics, and those that may be: older messages of a key may be gone,
        wherever the log begins. With what is known of each: ``is compacted``."""
        ...


class Reader(Protocol):
    """Reads records again, outside the group. Any thread."""

    def read(self, source: TopicPartition, first: int, last: int) -> Iterator[LogRecord]:
        """The existing records from ``first`` to ``last``.

        Raises LogUnreadable, and LogGone if the log begins above ``first``.
        """
        ...

    def record(self, source: TopicPartition, offset: int) -> LogRecord | None:
        """One record, None if the log does not hold it any more. Raises LogUnreadable."""
        ...


class LogProbe(Protocol):
    """Queries about the logs that are repeated. One thread's. Each raises NotAnswered."""

    def ends(self) -> LogEnds:
        """The logs' ends."""
        ...

    def kept(self) -> KeptRecords:
        """What is kept of the logs."""
        ...


@dataclass(frozen=True, slots=True)
class Start:
    """The start of reading. ``recorded`` names the topics' ids. ``load`` returns the snapshot at
    each assignment. ``apply_force``: the configured start overrules it, once. ``until``: where a
    run ends that reads only what is there, in the topics that there are; None: the run goes on."""

    recorded: Snapshot
    load: Callable[[], Loaded]
    apply_force: bool
    single_writer: str | None = None
    until: Mapping[TopicPartition, int] | None = None


class Source(Protocol):
    """One pipeline's topics and group. Made by ``open_source``; costs nothing until it is used."""

    def topic_ids(self) -> dict[str, str]:
        """The id of each topic that is read: of those that are named and those that patterns take
        now. Raises NotAnswered, TopicMissing.

        Only the id tells a topic from a recreated one of the same name.
        """
        ...

    def identity(self) -> str:
        """The group with its cluster: no two groups have the same. Raises NotAnswered."""
        ...

    def ends(self) -> dict[TopicPartition, int]:
        """Where each partition ends now. Raises NotAnswered."""
        ...

    def questions(self) -> Questions:
        """Queries, for one thread. Raises NotAnswered."""
        ...

    def members(self) -> list[GroupMember]:
        """The group's members now. Raises NotAnswered."""
        ...

    def own_instance(self) -> str | None:
        """The static member name of this state directory's daemon. It stays in the group for a
        while after the daemon's end. Raises StoreError."""
        ...

    def group_commit(self) -> OffsetStore:
        """The group's commit as a store, not started yet."""
        ...

    def reader(self, uncommitted: bool = False) -> Reader:
        """A reader for consumed records. ``uncommitted``: of open transactions, too."""
        ...

    def appender(self) -> Appender:
        """An appender to the topics. Ends the transaction that an earlier one left open. Raises
        AppendRefused, AppendFailed."""
        ...

    def consume(self, start: Start) -> RecordSource:
        """A member of the group that has not joined yet. Raises NotAnswered."""
        ...

    def probe(self) -> LogProbe:
        """For ``LogWatch``. Raises NotAnswered."""
        ...

    def problems(self) -> Iterator[tuple[str, str]]:
        """Settings that the client refuses: the place of each in the configuration, and why."""
        ...


def committed(source: Source) -> dict[TopicPartition, int]:
    """The group's commits in the pipeline's topics. Raises StoreError."""
    store = source.group_commit()
    store.start()
    try:
        found = store.get().snapshot
    finally:
        store.stop()
    return {} if found is None else {s: state.frontier for s, state in found.partitions.items()}
