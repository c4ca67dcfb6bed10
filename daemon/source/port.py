"""What the daemon and its commands want of a pipeline's source: logs that are read as a group.

A log is a sequence of records with growing 64-bit offsets; a topic has one or more of them, its
partitions. An adapter gives a source's client these words, and its errors these four.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from actors.contract.ports import RecordSource
from daemon.source.appending import Appender
from offsets.position import TopicPartition
from offsets.recovery import Watermarks
from offsets.snapshot import Snapshot
from offsets.store import Loaded, OffsetStore


class BrokerUnreachable(Exception):
    """No broker can be asked: its address and what the client said."""


class TopicMissing(Exception):
    """A configured topic is not on the broker."""


class NotAnswered(Exception):
    """The broker did not say: one line. ``away``: nobody was there to answer; else it refused."""

    def __init__(self, reason: str, away: bool) -> None:
        super().__init__(reason)
        self.away = away


class LogUnreadable(Exception):
    """The broker does not give it now: one line. It may later."""


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
    """Who is in a group. ``instance_id``: of a static member, else None."""

    client_id: str
    host: str
    instance_id: str | None


class Questions(Protocol):
    """Questions about logs. One thread's. Every one raises NotAnswered."""

    def partitions(self, topics: Collection[str]) -> list[TopicPartition]:
        """All partitions of the topics, which are known to be there."""
        ...

    def begins(self, sources: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """Where each log begins."""
        ...

    def watermarks(self, sources: Sequence[TopicPartition]) -> dict[TopicPartition, Watermarks]:
        """Where each log begins and ends."""
        ...

    def committed_ends(self, sources: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """Up to where no transaction is open."""
        ...

    def at_time(self, sources: Sequence[TopicPartition], unix_ms: int) -> dict[TopicPartition, int]:
        """The first offset at that time or later, of those logs that have one."""
        ...

    def compacted(self, topics: Collection[str]) -> frozenset[str]:
        """The topics of which older messages of a key may be gone, wherever the log begins."""
        ...


class Reader(Protocol):
    """Reads records again, beside the group. Any thread."""

    def read(self, source: TopicPartition, first: int, last: int) -> Iterator[LogRecord]:
        """The records from ``first`` to ``last``, those that are there.

        Raises LogUnreadable, and LogGone where the log begins above ``first``.
        """
        ...

    def record(self, source: TopicPartition, offset: int) -> LogRecord | None:
        """One record, None where the log does not hold it any more. Raises LogUnreadable."""
        ...


@dataclass(frozen=True, slots=True)
class Start:
    """What reading begins from. ``recorded`` names the topics' ids; ``load`` gives the snapshot as
    it is at each assignment; ``apply_force``: the configured start overrules it, once."""

    recorded: Snapshot
    load: Callable[[], Loaded]
    apply_force: bool


class Source(Protocol):
    """One pipeline's topics and group. Made by ``open_source``; costs nothing until it is asked."""

    def topic_ids(self) -> dict[str, str]:
        """The id of each topic. Raises BrokerUnreachable, TopicMissing.

        An id tells a topic from one of the same name that was made later; nothing else does.
        """
        ...

    def identity(self) -> str:
        """The group with the cluster that it is of: no two have the same. Raises
        BrokerUnreachable."""
        ...

    def ends(self) -> dict[TopicPartition, int]:
        """Where each partition ends now. Raises BrokerUnreachable."""
        ...

    def questions(self) -> Questions:
        """For one thread. Raises NotAnswered."""
        ...

    def members(self) -> list[GroupMember]:
        """Who is in the group now. Raises NotAnswered."""
        ...

    def own_instance(self) -> str | None:
        """Under which static name this state directory's daemon is a member, or was: it stays one
        for a while after its end. Raises StoreError."""
        ...

    def group_commit(self) -> OffsetStore:
        """The group's commit, as a store that is not started yet."""
        ...

    def reader(self, uncommitted: bool = False) -> Reader:
        """For reading again what was consumed. ``uncommitted``: of open transactions, too."""
        ...

    def appender(self) -> Appender:
        """For appending records to the topics. Ends the transaction that an earlier one left open.
        Raises AppendRefused, AppendFailed."""
        ...

    def consume(self, start: Start) -> RecordSource:
        """A member of the group, not joined yet. Raises NotAnswered, BrokerUnreachable."""
        ...


def committed(source: Source) -> dict[TopicPartition, int]:
    """What the group has committed of the pipeline's topics. Raises StoreError."""
    store = source.group_commit()
    store.start()
    try:
        found = store.get().snapshot
    finally:
        store.stop()
    return {} if found is None else {s: state.frontier for s, state in found.partitions.items()}
