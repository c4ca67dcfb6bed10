"""A topic that is deleted and recreated while it is read: its offsets mean other messages."""

from __future__ import annotations

import time

import pytest

from actors.contract.messages import Assigned, Confirmed, Revoked
from daemon.config.pipelines import PipelineSection
from offsets.position import TopicPartition
from offsets.recovery import PositionError
from offsets.store import Loaded
from sources.kafka.admin import Admin
from sources.kafka.source import KafkaSource
from sources.kafka.start_resolver import PositionResolver
from sources.kafka.topic_watch import TopicWatch
from tests.integration.rig import Rig

WITHIN_S = 60.0


class Reader:
    """The consumer with its watch, and what it gave."""

    def __init__(self, rig: Rig, watch: TopicWatch) -> None:
        settings = {"bootstrap.servers": rig.broker.bootstrap}
        section = PipelineSection.model_validate(rig.pipeline())
        resolver = PositionResolver(
            settings, f"g-{rig.db}", section, lambda: Loaded(None), False, check_topics=watch.check
        )
        self.source = KafkaSource(settings, [rig.topic], f"g-{rig.db}", resolver, "p", watch=watch)
        self.resolver = resolver
        self.offsets: list[int] = []
        self.error: str | None = None
        self.source.start(self)

    def assigned(self, assigned: Assigned) -> None:
        """What is read tells."""

    def revoked(self, revoked: Revoked) -> None:
        """What is read tells."""

    def confirmed(self, confirmed: Confirmed) -> None:
        """Nothing is committed here."""

    def poll_until(self, offset: int) -> None:
        """Read up to an offset, or to an error."""
        end = time.monotonic() + WITHIN_S
        while self.error is None and offset not in self.offsets and time.monotonic() < end:
            polled = self.source.poll(100, 0.1)
            self.error = polled.error
            for fetched in polled.batches:
                self.offsets += fetched.offsets

    def poll_until_told(self, what: str) -> None:
        """Read on until an error says it; that the topic is not there may be said before."""
        end = time.monotonic() + WITHIN_S
        while what not in (self.error or ""):
            assert time.monotonic() < end, self.error
            self.error = self.source.poll(100, 0.1).error


def test_it_ends_the_reading_and_the_next_assignment(rig: Rig) -> None:
    """The client alone reads on at the old position, above what the new topic holds below it."""
    known = Admin({"bootstrap.servers": rig.broker.bootstrap}).ids([rig.topic])
    watch = TopicWatch({"bootstrap.servers": rig.broker.bootstrap}, known)
    rig.produce(*(str(n).encode() for n in range(10)))
    reader = Reader(rig, watch)
    try:
        reader.poll_until(9)
        assert (reader.error, reader.offsets) == (None, list(range(10)))
        rig.make_again(rig.topic)
        rig.produce(*(str(n).encode() for n in range(20)))
        reader.poll_until_told("was deleted and recreated while it was read")
        with pytest.raises(PositionError, match="deleted and recreated"):
            reader.resolver([TopicPartition(rig.topic, 0)])
    finally:
        reader.source.close()
