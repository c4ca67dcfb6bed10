"""Finds the topics that a pipeline's patterns take, while it runs.

The client could subscribe to patterns itself. But its expressions know no exception, with the new
group protocol the broker matches them by other rules than the client, and nothing tells what they
took. So binlogd asks for the topics' names and subscribes to those that match.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import structlog
from confluent_kafka import KafkaError, Message

from actors.runtime.periodic import Periodic
from offsets.position import TopicPartition
from sources.base.port import NotAnswered
from sources.base.topic_selection import TopicSelection
from sources.kafka.admin import Admin

REFRESH = "topic.metadata.refresh.interval.ms"
"""The client's setting. It is the time between two queries here, too."""

REFRESH_MS = 30_000
"""Its default where there are patterns; the client's own is five minutes. Less: each client of a
large cluster has all its topics' names sent more often. More: a new table is waited for."""

ANSWER_WITHIN_S = 10.0
"""The limit for one answer. A broker that is away is queried again the next time."""

ABSENT = frozenset(
    {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION}
)
"""What the client says of a topic that was deleted."""

SOME = 20
"""Topics that an event names."""


def refresh_settings(settings: Mapping[str, Any], selection: TopicSelection) -> dict[str, Any]:
    """The client's settings with a refresh that is soon enough for new topics."""
    return {**({REFRESH: REFRESH_MS} if selection.patterns else {}), **settings}


class TopicFinder:
    """Asks for the topics on a thread of its own. ``found`` may be called from any thread.

    A topic is gone when two answers in a row lack it: a broker that has just started may know less
    than there is.
    """

    def __init__(
        self, settings: Mapping[str, Any], selection: TopicSelection, there: Collection[str]
    ) -> None:
        """``there``: the topics that are known already. Raises NotAnswered."""
        self._admin = Admin(settings, ANSWER_WITHIN_S)
        self._selection = selection
        self._last = frozenset(there)
        self._found: frozenset[str] | None = None
        every_ms = float(settings.get(REFRESH, REFRESH_MS))
        every_s = (every_ms if every_ms > 0 else REFRESH_MS) / 1000
        self._log = structlog.get_logger().bind(actor="topic-finder")
        self._rounds = Periodic(
            "topic-finder", self.look, every_s, "topic-finder", "topics_not_listed"
        )

    def start(self) -> None:
        """Begin to ask."""
        self._rounds.start()

    def close(self) -> None:
        """Stop. A query under way is not awaited, because it is bounded in time."""
        self._rounds.close()

    @property
    def found(self) -> frozenset[str] | None:
        """What patterns take now; another object with each answer, None before the first."""
        return self._found

    def look(self) -> None:
        """Ask once. Runs on the thread."""
        try:
            names = frozenset(self._admin.names())
        except NotAnswered as error:
            # That no broker answers is in the status and in the log already.
            self._log.debug("topics_not_listed", reason=str(error))
            return
        self._found = frozenset(self._selection.matching(names | self._last))
        self._last = names


class FollowedTopics:
    """The topics that a consumer subscribes to. Only the fetcher's thread calls it."""

    def __init__(
        self,
        finder: TopicFinder,
        selection: TopicSelection,
        there: Iterable[str],
        known: Iterable[str],
        pipeline: str,
        *,
        takes_new: bool = True,
    ) -> None:
        """``there``: what patterns took at the start; ``known``: topics that are recorded.
        ``takes_new``: a topic that comes later is read, too."""
        self._finder = finder
        self._selection = selection
        self._matched = frozenset(there)
        self._known = {topic for topic in known if selection.matches(topic)} | self._matched
        self._takes_new = takes_new
        self._unread: set[str] = set()
        self._started = False
        self._answer: frozenset[str] | None = None
        self.gone: frozenset[str] = frozenset()
        """Topics that were read and are not there any more."""
        self.missed = False
        """A topic was assigned, was not found then, and is there: only a new membership gives it
        again."""
        self._log = structlog.get_logger().bind(pipeline=pipeline, actor="fetcher-0")

    @property
    def topics(self) -> list[str]:
        """What to subscribe to."""
        return [*self._selection.names, *sorted(self._matched)]

    def _start(self) -> None:
        self._started = True
        if not self._matched:
            self._log.warning("no_topic_matches", patterns=list(self._selection.patterns))
        self._finder.start()

    def close(self) -> None:
        """Look no more."""
        self._finder.close()

    def excuses(self, problem: Message) -> bool:
        """Whether an error says only that a topic is absent which may be."""
        error, topic = problem.error(), problem.topic()
        if error is None or topic is None or error.code() not in ABSENT:
            return False
        return self._selection.comes_and_goes(topic)

    def not_read(
        self, assigned: Iterable[TopicPartition], read: Collection[TopicPartition]
    ) -> None:
        """Note which topics were assigned and could not be found."""
        self._unread |= {source.topic for source in assigned if source not in read}

    def changed(self) -> bool:
        """Whether ``topics``, ``gone`` or ``missed`` differ from the last call's. The first call
        begins the looking."""
        if not self._started:
            self._start()
        answer = self._finder.found
        if answer is None or answer is self._answer:
            return False
        self._answer = answer
        before_gone, self.gone = self.gone, frozenset(self._known - answer)
        for topic in sorted(before_gone - self.gone):
            self._log.info("topic_back", topic=topic)
        before = self._matched
        self._matched = answer if self._takes_new else answer & self._known
        if new := self._matched - self._known:
            names = sorted(new)
            self._log.info("topics_found", topics=names[:SOME], count=len(names))
        self._known |= self._matched
        self.missed = bool(self._unread & self._matched)
        self._unread.clear()
        return self._matched != before or self.gone != before_gone or self.missed
