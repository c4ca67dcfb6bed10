"""The port to topics beside the logs: of dead letters, of positions, of signals and notifications.

They belong to binlogd. The logs may come from another system.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from actors.contract.ports import DeadLetterStore, NotKept
from offsets.position import TopicPartition
from offsets.store import OffsetStore
from settings.counted import counted
from sources.base.letter import Letter, LetterId, LetterMaker, Mark
from sources.base.port import GroupMember, Outgoing, Questions, Reader


class UnfitTopic(NotKept):
    """The topic would lose letters, now and later: one line."""


class LetterStore(DeadLetterStore, Protocol):
    """Where the letters of one pipeline are kept."""

    def recent(self, within_s: float) -> list[float]:
        """The ages in seconds of the letters of the last ``within_s``. Raises NotKept."""
        ...


class LetterTail(Protocol):
    """The letters and marks of a topic, of all pipelines, as far as they were read. One
    thread's."""

    @property
    def letters(self) -> set[LetterId]:
        """Of the letters that are there."""
        ...

    @property
    def marked(self) -> set[LetterId]:
        """Of those that were replayed or discarded."""
        ...

    def look(self) -> None:
        """Read what is new, and forget what the topic has lost. Raises NotKept."""
        ...


class LetterTopic(Protocol):
    """A topic with the dead letters of one pipeline or several. Each call raises NotKept."""

    def check(self) -> None:
        """Look whether the topic, if it exists, keeps its records. Raises UnfitTopic."""
        ...

    def read(self, damage: list[str]) -> Iterator[Letter | Mark]:
        """All letters and marks, of all pipelines. What can't be read is added to ``damage``."""
        ...

    def tail(self) -> LetterTail:
        """What is there and what comes. It sends no query yet."""
        ...

    def store(self, pipeline: str, maker: LetterMaker) -> LetterStore:
        """Create the topic if it is missing, and write to it. Raises UnfitTopic."""
        ...


class TopicLog(Protocol):
    """A topic that is read outside of any group, its committed records alone. One thread's."""

    @property
    def topic(self) -> str:
        """Its name."""
        ...

    def reach(self) -> None:
        """Return where a broker answers. Raises NotAnswered, which says where it was looked for."""
        ...

    def describe(self) -> tuple[str, list[TopicPartition]]:
        """Its id and its partitions. Raises TopicMissing, NotAnswered."""
        ...

    def questions(self) -> Questions:
        """Queries. Raises NotAnswered."""
        ...

    def reader(self) -> Reader:
        """A reader of its committed records."""
        ...


class NotSent(Exception):
    """Not all records are in the topic: one line. ``arrived``: how many are."""

    def __init__(self, reason: str, arrived: int) -> None:
        super().__init__(f"{reason}; {counted(arrived, 'record')} arrived")
        self.arrived = arrived


class Sender(Protocol):
    """Sends records, each once and in their order inside a partition. One thread's, for one
    use."""

    def send(self, records: Iterable[Outgoing], arrived: Callable[[int, int], None] = ...) -> int:
        """Send all; returns how many, once each has arrived. ``arrived`` gets the partition and the
        offset of each, inside a partition in the order of sending. Raises NotSent."""
        ...


class Notifications(Protocol):
    """Sends notifications, at best effort: one that can't be sent is in the log. One thread's."""

    def send(self, key: str, document: Mapping[str, Any]) -> None:
        """Send one, keyed by the pipeline. Returns at once; raises nothing."""
        ...

    def close(self) -> None:
        """Wait for those on their way, for a bounded time."""
        ...


class CollectorTopics(Protocol):
    """The topics that collectors write, and the group of their workers. One thread's."""

    def keep(
        self, topic: str, settings: Mapping[str, str], must: Mapping[str, str] | None = None
    ) -> None:
        """Create a topic of one partition with these settings, unless it is there. Raises
        UnfitTopic where it has several, or other settings than it ``must``; NotAnswered."""
        ...

    def remove(self, topics: Sequence[str]) -> list[str]:
        """Remove those that are there, with all that they hold; these. Raises NotAnswered."""
        ...

    def workers(self, group: str) -> list[GroupMember]:
        """The members of a group of Connect's workers. Raises NotAnswered."""
        ...


class ContinuedTopic(Protocol):
    """A topic of one partition that goes on where one of the same name in another cluster ends: its
    first offset is that one's end. One thread's. Each call raises UnfitTopic where the topic has
    other partitions, or records of somebody else, or ends beyond that; NotAnswered,
    LogUnreadable."""

    def lacks(self, at: int) -> int:
        """How many offsets the topic is short of ``at``, whether it is there or not."""
        ...

    def begin(self, at: int, settings: Mapping[str, str], tell: Callable[[int], None] = ...) -> str:
        """Have it begin and end at that offset; gives its id. A topic that is missing is made with
        these settings. It may be repeated where it was cut short. ``tell`` gets the offsets that
        were passed over so far."""
        ...


class Cluster(Protocol):
    """What holds the topics, for who runs it. Any thread. Each call raises NotAnswered."""

    def answers(self) -> None:
        """Return where it answers."""
        ...

    def make(self, topic: str, settings: Mapping[str, str]) -> None:
        """Create a topic of one partition, unless it exists."""
        ...


class Topics(Protocol):
    """Topics by their names. Made by ``open_topics``; no query is sent until one is used."""

    def letters(self, topic: str) -> LetterTopic:
        """One that holds dead letters."""
        ...

    def offsets(self, topic: str, pipeline: str, group: str) -> OffsetStore:
        """One that holds a pipeline's positions, as a store that is not started yet."""
        ...

    def log(self, topic: str) -> TopicLog:
        """Any topic, to read it."""
        ...

    def sender(self) -> Sender:
        """For records to any topic. Raises NotSent."""
        ...

    def notifications(self, topic: str) -> Notifications:
        """One that notifications go to."""
        ...

    def of_collectors(self) -> CollectorTopics:
        """Those that collectors write."""
        ...

    def continued(self, topic: str) -> ContinuedTopic:
        """One that goes on where another cluster's ends."""
        ...
