"""The consumer as a member of a real group: restarts, and reading a partition again."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping

import pytest

from actors.messages import Assigned, Confirmed, Revoked
from daemon.config import PipelineSection
from daemon.kafka_positions import PositionResolver
from daemon.kafka_source import KafkaSource
from offsets.position import TopicPartition
from offsets.store import Loaded
from tests.integration.rig import Rig, canal
from tests.integration.test_group import PROTOCOLS

ROUNDS = 600
"""Polls of 0.1 s that a group may take to come to rest."""


class Heard:
    """A member, and what its group told it."""

    def __init__(self, rig: Rig, topic: str, settings: Mapping[str, str]) -> None:
        common = {"bootstrap.servers": rig.broker.bootstrap, **settings}
        section = PipelineSection.model_validate(rig.pipeline(topics=[topic]))
        resolver = PositionResolver(common, f"g-{rig.db}", section, lambda: Loaded(None, ()), False)
        self.source = KafkaSource(common, [topic], f"g-{rig.db}", resolver, "p")
        self.held: set[TopicPartition] = set()
        self.revokes: list[Revoked] = []
        self.offsets: list[int] = []
        self.source.start(self)

    def assigned(self, assigned: Assigned) -> None:
        self.held |= set(assigned.starts)

    def revoked(self, revoked: Revoked) -> None:
        self.held -= set(revoked.sources)
        self.revokes.append(revoked)

    def confirmed(self, confirmed: Confirmed) -> None:
        """Nothing is committed here."""

    def poll(self) -> None:
        polled = self.source.poll(100, 0.1)
        assert polled.error is None, polled.error
        for fetched in polled.batches:
            self.offsets += fetched.offsets


Join = Callable[..., Heard]


@pytest.fixture
def join(rig: Rig) -> Iterator[Join]:
    """Makes members; all leave at the end."""
    made: list[Heard] = []

    def joined(topic: str, **settings: str) -> Heard:
        made.append(Heard(rig, topic, {k.replace("_", "."): v for k, v in settings.items()}))
        return made[-1]

    yield joined
    for member in made:
        member.source.close()


def until(done: Callable[[], bool], *members: Heard) -> None:
    """Have the members poll in turn until it is so."""
    for _, member in zip(range(ROUNDS), itertools.cycle(members), strict=False):
        if done():
            return
        member.poll()
    raise AssertionError([(member.held, member.revokes, member.offsets) for member in members])


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_partition_is_read_again_in_the_middle(rig: Rig, join: Join, protocol: str) -> None:
    """From its start, whole and in order, whatever was fetched ahead; the group hears nothing."""
    rig.produce(*(canal(f"{rig.db}.t", "INSERT", [{"id": n}]) for n in range(5)))
    member = join(rig.topic, **PROTOCOLS[protocol])
    until(lambda: len(member.offsets) == 5, member)
    member.source.restart((TopicPartition(rig.topic, 0),))
    until(lambda: len(member.offsets) == 10, member)
    assert member.offsets == [0, 1, 2, 3, 4] * 2
    assert member.revokes == []


@pytest.mark.parametrize("protocol", ["cooperative", "new"])
def test_a_static_member_restarts_without_a_rebalance(rig: Rig, join: Join, protocol: str) -> None:
    """Within the session timeout its partitions wait for it: the other member is left alone."""
    topic = f"{rig.topic}-static"
    rig.create_topic(topic, partitions=2)
    kafka = PROTOCOLS[protocol]
    first = join(topic, **kafka, group_instance_id="first")
    second = join(topic, **kafka, group_instance_id="second")
    until(lambda: len(first.held) == len(second.held) == 1, first, second)
    before, second.revokes = set(first.held), []
    first.source.close()
    again = join(topic, **kafka, group_instance_id="first")
    until(lambda: bool(again.held), again, second)
    assert again.held == before
    assert second.revokes == []


def test_a_member_that_leaves_gives_its_partition_back(rig: Rig, join: Join) -> None:
    """Without ``group.instance.id`` the group does not wait."""
    topic = f"{rig.topic}-dynamic"
    rig.create_topic(topic, partitions=2)
    first, second = join(topic), join(topic)
    until(lambda: len(first.held) == len(second.held) == 1, first, second)
    first.source.close()
    until(lambda: len(second.held) == 2, second)
