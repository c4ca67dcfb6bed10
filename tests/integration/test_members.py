"""The consumer as a member of a real group: restarts, and reading a partition again."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from structlog.testing import capture_logs

from actors.contract.messages import Assigned, Confirmed, Revoked
from daemon.config.pipelines import PipelineSection
from demo.broker import DevBroker
from offsets.position import TopicPartition
from offsets.recovery import PositionError, PositionUnknown
from offsets.snapshot import PartitionState, Snapshot
from offsets.store import Loaded, StoreError
from sources.base.topic_selection import TopicSelection
from sources.kafka.commit_store import KafkaCommitStore, group_commits
from sources.kafka.source import KafkaSource, Resolver
from sources.kafka.start_resolver import PositionResolver
from tests.integration.rig import Rig, canal
from tests.integration.test_group import PROTOCOLS

pytestmark = pytest.mark.long

ROUNDS = 600
"""Polls of 0.1 s that a group may take to come to rest."""


Around = Callable[[PositionResolver], Resolver]
"""Comes between a member and what finds its starts."""


def _as_it_is(resolver: PositionResolver) -> Resolver:
    return resolver


class Heard:
    """A member, and what its group told it."""

    def __init__(
        self,
        rig: Rig,
        topic: str,
        settings: Mapping[str, str],
        around: Around,
    ) -> None:
        common = {"bootstrap.servers": rig.broker.bootstrap, **settings}
        section = PipelineSection.model_validate(rig.pipeline(topics=[topic]))
        resolver = PositionResolver(common, f"g-{rig.db}", section, lambda: Loaded(None, ()), False)
        self.source = KafkaSource(common, [topic], f"g-{rig.db}", around(resolver), "p")
        self.held: set[TopicPartition] = set()
        self.revokes: list[Revoked] = []
        self.offsets: list[int] = []
        self.error: str | None = None
        self.may_fail = False
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
        assert polled.error is None or self.may_fail, polled.error
        self.error = self.error or polled.error
        for fetched in polled.batches:
            self.offsets += fetched.offsets


Join = Callable[..., Heard]


@pytest.fixture
def join(rig: Rig) -> Iterator[Join]:
    """Makes members; all leave at the end."""
    made: list[Heard] = []

    def joined(topic: str, around: Around = _as_it_is, **settings: str) -> Heard:
        kafka = {k.replace("_", "."): v for k, v in settings.items()}
        made.append(Heard(rig, topic, kafka, around))
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


@pytest.mark.parametrize("protocol", ["eager", "cooperative"])
def test_the_older_of_two_members_of_one_id_is_out_and_says_so(
    rig: Rig, join: Join, protocol: str
) -> None:
    """A copied state directory: one line that names the id, the cause and the way out."""
    kafka = PROTOCOLS[protocol] | {"heartbeat.interval.ms": "500"}
    older = join(rig.topic, **kafka, group_instance_id="same")
    until(lambda: bool(older.held), older)
    older.may_fail = True
    younger = join(rig.topic, **kafka, group_instance_id="same")
    until(lambda: bool(younger.held) and older.error is not None, older, younger)
    assert older.error is not None
    for part in (f"group 'g-{rig.db}'", "'same'", "copy of the state directory", "binlogd run"):
        assert part in older.error


def test_under_the_new_protocol_a_member_waits_while_its_id_is_in_use(rig: Rig, join: Join) -> None:
    """By its own former process, after ``kill -9``, for as long as that one's session lasts: its
    client ends each time it asks, and it goes on with another."""
    older = join(rig.topic, **PROTOCOLS["new"], group_instance_id="same")
    until(lambda: bool(older.held), older)
    younger = join(rig.topic, **PROTOCOLS["new"], group_instance_id="same")
    for _ in range(30):
        younger.poll()
    assert not younger.held
    older.source.close()
    until(lambda: bool(younger.held), younger)
    assert younger.held == {TopicPartition(rig.topic, 0)}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_commit_in_the_place_of_a_static_member_that_has_ended(
    rig: Rig, join: Join, protocol: str
) -> None:
    """It is in the group for a while yet, which refuses everybody outside: a reset must not
    wait for that."""
    member = {
        "bootstrap.servers": rig.broker.bootstrap, "group.instance.id": "mine",
        **PROTOCOLS[protocol],
    }  # fmt: skip
    ended = join(rig.topic, **PROTOCOLS[protocol], group_instance_id="mine")
    until(lambda: bool(ended.held), ended)
    ended.source.close()
    source = TopicPartition(rig.topic, 0)
    wanted = Snapshot("p", f"g-{rig.db}", {}, {source: PartitionState(0)})
    for settings, refused in ((None, True), (member, False)):
        store = KafkaCommitStore(
            {"bootstrap.servers": rig.broker.bootstrap}, TopicSelection((rig.topic,)), "p",
            f"g-{rig.db}",
            member=settings,
        )  # fmt: skip
        store.start()
        try:
            error = store.set(wanted).exception(60)
            assert isinstance(error, StoreError) is refused
        finally:
            store.stop()
    known = group_commits(member, f"g-{rig.db}", [source])
    assert known == {source: 0}


def test_the_start_is_found_when_the_broker_comes_back(tmp_path: Path) -> None:
    """It goes away while it is asked, which ended the process once, and is asked again."""
    with DevBroker(tmp_path) as broker:
        settings = {"bootstrap.servers": broker.bootstrap}
        admin = AdminClient(settings)
        admin.create_topics([NewTopic("t", 1, 1)])["t"].result(20)
        section = PipelineSection.model_validate(
            {"topics": ["t"], "format": "canal-json", "target": "lake.{database}.{table}"}
        )
        resolver = PositionResolver(settings, "g", section, lambda: Loaded(None, ()), False, 40.0)
        source = TopicPartition("t", 0)
        assert resolver([source]).starts == {source: 0}
        broker.stop()
        with ThreadPoolExecutor(1) as pool, capture_logs() as said:
            found = pool.submit(resolver, [source])
            while "start_position_not_known" not in {event["event"] for event in said}:
                wait([found], timeout=0.1)
            broker.start()
            assert found.result(120).starts == {source: 0}
    assert {event["event"] for event in said} >= {"start_position_not_known", "start_position"}


def test_a_broker_that_stays_away_is_an_error_in_bounded_time(rig: Rig) -> None:
    """A partition is not read from a guess."""
    section = PipelineSection.model_validate(rig.pipeline())
    settings = {"bootstrap.servers": "127.0.0.1:1"}
    resolver = PositionResolver(settings, "g", section, lambda: Loaded(None, ()), False, 1.0)
    with pytest.raises(PositionError, match="the start can't be decided"):
        resolver([TopicPartition(rig.topic, 0)])


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_member_whose_start_can_not_be_asked_joins_anew(
    rig: Rig, join: Join, protocol: str
) -> None:
    """A broker that is away for long ends no pipeline: it is asked again until it is there."""
    rig.produce(*(canal(f"{rig.db}.t", "INSERT", [{"id": n}]) for n in range(5)))
    asked = 0

    def away_twice(resolver: PositionResolver) -> Resolver:
        def resolve(sources: list[TopicPartition]) -> Assigned:
            nonlocal asked
            asked += bool(sources)
            if sources and asked <= 2:
                raise PositionUnknown("no answer in time")
            return resolver(sources)

        return resolve

    member = join(rig.topic, around=away_twice, **PROTOCOLS[protocol], group_instance_id="m")
    until(lambda: len(member.offsets) == 5, member)
    asked = 1
    member.source.restart((TopicPartition(rig.topic, 0),))
    until(lambda: len(member.offsets) == 10, member)
    assert member.offsets == [0, 1, 2, 3, 4] * 2


def test_a_member_that_leaves_gives_its_partition_back(rig: Rig, join: Join) -> None:
    """Without ``group.instance.id`` the group does not wait."""
    topic = f"{rig.topic}-dynamic"
    rig.create_topic(topic, partitions=2)
    first, second = join(topic), join(topic)
    until(lambda: len(first.held) == len(second.held) == 1, first, second)
    first.source.close()
    until(lambda: len(second.held) == 2, second)
    assert len(second.held) == 2
