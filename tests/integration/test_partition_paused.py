"""One partition of a real consumer is paused, as one that waits for a schema: the others flow."""

from __future__ import annotations

import time
from collections import defaultdict

from actors.contract.messages import Assigned, Confirmed, Revoked
from daemon.config.pipelines import PipelineSection
from offsets.position import TopicPartition
from offsets.store import Loaded
from sources.kafka.source import KafkaSource
from sources.kafka.start_resolver import PositionResolver
from tests.integration.rig import Rig

WITHIN_S = 60.0
MESSAGES = 20_000
"""More than the client takes at once, so that some are fetched ahead when the pause comes."""


class Reader:
    """The consumer, and the offsets that it gave of each topic."""

    def __init__(self, rig: Rig, topics: list[str]) -> None:
        settings = {"bootstrap.servers": rig.broker.bootstrap}
        section = PipelineSection.model_validate(rig.pipeline() | {"topics": topics})
        resolver = PositionResolver(
            settings, f"g-{rig.db}", section, lambda: Loaded(None), False, check_topics=lambda _: {}
        )
        self.source = KafkaSource(settings, topics, f"g-{rig.db}", resolver, "p")
        self.offsets: dict[str, list[int]] = defaultdict(list)
        self.positions: dict[TopicPartition, int] = {}
        self.source.start(self)

    def assigned(self, assigned: Assigned) -> None:
        """What is read tells."""

    def revoked(self, revoked: Revoked) -> None:
        """What is read tells."""

    def confirmed(self, confirmed: Confirmed) -> None:
        """Nothing is committed here."""

    def poll(self) -> None:
        polled = self.source.poll(500, 0.1)
        assert polled.error is None
        self.positions |= polled.positions
        for fetched in polled.batches:
            self.offsets[fetched.source.topic] += fetched.offsets

    def poll_until(self, topic: str, count: int) -> None:
        end = time.monotonic() + WITHIN_S
        while len(self.offsets[topic]) < count:
            assert time.monotonic() < end, {t: len(o) for t, o in self.offsets.items()}
            self.poll()


def test_the_others_flow_and_it_goes_on_where_it_was(rig: Rig) -> None:
    """What the client has fetched ahead is thrown away and fetched again: none is lost, none comes
    twice, also when all were paused and resumed meanwhile."""
    held, other = rig.topic, f"{rig.topic}-other"
    rig.create_topic(other)
    values = [str(n).encode() for n in range(MESSAGES)]
    rig.produce(*values)
    rig.produce(*values, topic=other)
    reader, waits = Reader(rig, [held, other]), TopicPartition(held, 0)
    try:
        reader.poll_until(held, 1)
        reader.source.pause((waits,))
        before = len(reader.offsets[held])
        reader.poll_until(other, MESSAGES // 2)
        reader.source.pause()
        reader.source.resume()
        reader.source.pause((waits,))
        reader.poll_until(other, MESSAGES)
        assert len(reader.offsets[held]) == before
        assert reader.positions.get(waits, before) == before
        reader.source.resume((waits,))
        reader.poll_until(held, MESSAGES)
        assert reader.offsets == {held: list(range(MESSAGES)), other: list(range(MESSAGES))}
    finally:
        reader.source.close()
