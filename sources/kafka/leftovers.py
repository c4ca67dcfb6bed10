"""Finds partitions that no member of the group was given, after a static member has come back.

Within its session the classic protocol gives a static member what it had, without a rebalance. A
topic or a partition that was added meanwhile is then nobody's, for as long as nothing else makes
the group rebalance: its messages would wait without a word.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import structlog

from offsets.position import TopicPartition
from sources.base.port import NotAnswered
from sources.kafka.cluster import Groups
from sources.kafka.settings import INSTANCE_ID

ANSWER_WITHIN_S = 5.0
"""The limit for one answer: the fetcher's thread waits for it, once after a join."""

AGAIN_S = 1.0
"""Between two queries while the group comes to rest, or no broker answers."""

SOME = 20
"""Partitions that an event names."""

Given = Callable[[Collection[str]], frozenset[TopicPartition] | None]
"""Those of the topics' partitions that no member has. None while the group does not know itself."""


def of_group(settings: Mapping[str, Any], group: str) -> Given:
    """Asks the broker. Raises NotAnswered."""

    def unread(topics: Collection[str]) -> frozenset[TopicPartition] | None:
        admin = Groups(settings, ANSWER_WITHIN_S)
        given = admin.given(group)
        if given is None:
            return None
        return frozenset(admin.partitions(topics, missing_too=True)) - given

    return unread


class Leftovers:
    """Looks once after each join of a static member. Only the fetcher's thread calls it."""

    def __init__(self, settings: Mapping[str, Any], unread: Given) -> None:
        self._static = bool(settings.get(INSTANCE_ID)) and settings.get("group.protocol") != (
            "consumer"  # where the broker assigns by what there is
        )
        self._unread = unread
        self._joined = False
        self._due_at: float | None = None
        self._log = structlog.get_logger().bind(actor="fetcher-0")

    def joins(self) -> None:
        """The member asks for partitions as a new process, or with a new client."""
        self._joined, self._due_at = self._static, None

    def granted(self, now: float) -> None:
        """The group has answered. ``now``: monotonic seconds."""
        if self._joined:
            self._joined, self._due_at = False, now

    def found(self, topics: Collection[str], now: float) -> bool:
        """Whether partitions are left over: the group must rebalance."""
        if self._due_at is None or now < self._due_at:
            return False
        self._due_at = now + AGAIN_S
        try:
            unread = self._unread(topics)
        except NotAnswered as error:
            self._log.debug("group_not_known", reason=str(error))
            return False
        if unread is None:
            return False
        self._due_at = None
        if unread:
            few = [str(source) for source in sorted(unread)[:SOME]]
            self._log.info("partitions_left_over", sources=few, count=len(unread))
        return bool(unread)
