"""What ``LogWatch`` asks of Kafka: the logs' ends, and what the broker keeps of them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from actors.runtime.mailbox import Clock
from offsets.position import TopicPartition
from sources.base.log_figures import KeptRecords, LogEnds
from sources.base.port import NotAllowed
from sources.base.topic_selection import TopicSelection
from sources.kafka.admin import Admin

ANSWER_WITHIN_S = 5.0
"""The limit for one query. A longer one only delays the report that nobody answers."""

PARTITIONS_EVERY_S = 30.0
"""Between two queries for the topics' partitions. A new partition is read later than that, because
the consumer's metadata are older."""


class KafkaLogProbe:
    """See ``LogProbe``: about all partitions of the selected topics. For one thread."""

    def __init__(
        self, settings: Mapping[str, Any], selection: TopicSelection, clock: Clock = time.monotonic
    ) -> None:
        """``settings`` are the consumer's: its isolation level decides whether it reads what is not
        committed. Raises NotLogEndsed."""
        self._admin = Admin(settings, ANSWER_WITHIN_S)
        self._selection = selection
        self._committed = settings.get("isolation.level") != "read_uncommitted"
        self._clock = clock
        self._partitions: list[TopicPartition] = []
        self._partitions_at = float("-inf")

    def ends(self) -> LogEnds:
        """See ``LogProbe``."""
        now = self._clock()
        if not self._partitions or now - self._partitions_at >= PARTITIONS_EVERY_S:
            self._partitions = self._admin.partitions_of(self._selection)
            self._partitions_at = now
        # First what is readable: the end may move on between the two, and is never before it.
        known, sources = self._admin.known_ends, self._partitions
        stable, error = known(sources, committed=True) if self._committed else ({}, None)
        ends, other = known(sources, committed=False)
        before = {source: at for source, at in stable.items() if at < ends.get(source, at)}
        return LogEnds(ends, error or other, before)

    def kept(self) -> KeptRecords:
        """See ``LogProbe``."""
        starts = self._admin.begins(self._admin.partitions_of(self._selection))
        try:
            settings = self._admin.settings_of({s.topic for s in starts})
        except NotAllowed as error:
            return KeptRecords(starts, refused=str(error))
        seconds = {}
        for topic, said in settings.items():
            milliseconds = int(said["retention.ms"])
            if "delete" in said["cleanup.policy"] and milliseconds >= 0:
                seconds[topic] = milliseconds / 1000
        return KeptRecords(starts, seconds)
