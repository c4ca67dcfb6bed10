"""The consumer's settings: what is ours, what the configuration may say."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from actors.contract.messages import SourceState
from daemon.config.pipelines import PipelineSection
from offsets.position import TopicPartition
from offsets.recovery import PositionError, PositionUnknown
from offsets.store import Loaded
from sources.base.port import NotAnswered, TopicMissing
from sources.kafka import admin as admin_module
from sources.kafka import fetched
from sources.kafka.admin import Admin
from sources.kafka.settings import assigns_incrementally, consumer_settings, revoke_patience_s
from sources.kafka.start_resolver import PositionResolver


def test_what_exactly_once_rests_on_is_not_up_for_configuration() -> None:
    """Positions are committed by us alone, and never reset in silence."""
    asked = {"enable.auto.commit": True, "auto.offset.reset": "latest", "group.id": "x"}
    made = consumer_settings(asked, "g")
    assert (made["group.id"], made["enable.auto.commit"], made["auto.offset.reset"]) == (
        "g", False, "error"
    )  # fmt: skip


def test_the_configuration_overrules_the_defaults() -> None:
    """Any librdkafka setting passes through."""
    made = consumer_settings({"fetch.wait.max.ms": 7, "client.rack": "r1"}, "g")
    assert (made["fetch.wait.max.ms"], made["client.rack"]) == (7, "r1")


@pytest.mark.parametrize(
    ("settings", "incremental"),
    [
        ({}, True),
        ({"partition.assignment.strategy": "range"}, False),
        ({"partition.assignment.strategy": "cooperative-sticky"}, True),
        ({"group.protocol": "consumer"}, True),
    ],
)
def test_assignments_come_as_differences_or_whole(
    settings: dict[str, str], incremental: bool
) -> None:
    """Answering in the wrong way makes librdkafka refuse the assignment."""
    assert assigns_incrementally(consumer_settings(settings, "g")) is incremental


def test_the_new_group_protocol_gets_no_strategy() -> None:
    """librdkafka's constructor refuses the two together."""
    made = consumer_settings({"group.protocol": "consumer"}, "g")
    assert "partition.assignment.strategy" not in made


@pytest.mark.parametrize(
    ("settings", "seconds"),
    [
        ({}, 22.5),
        ({"session.timeout.ms": 6000}, 3.0),
        ({"max.poll.interval.ms": "10000", "group.protocol": "consumer"}, 5.0),
    ],
)
def test_a_revoke_takes_half_of_what_keeps_the_membership(
    settings: dict[str, str], seconds: float
) -> None:
    """Waiting longer for a write would cost all partitions instead of one."""
    assert revoke_patience_s(settings) == seconds


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (NotAnswered("x", away=True), PositionUnknown),
        (NotAnswered("x", away=False), PositionError),
        (KafkaException(KafkaError(KafkaError._TRANSPORT)), PositionUnknown),
        (KafkaException(KafkaError(KafkaError.LEADER_NOT_AVAILABLE)), PositionUnknown),
        (TimeoutError(), PositionUnknown),
        (KafkaException(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)), PositionError),
        (KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)), PositionError),
    ],
)
def test_who_is_away_is_told_from_who_refuses(error: Exception, kind: type[Exception]) -> None:
    """The one comes back; the other says the same for ever, and the pipeline must end."""
    section = PipelineSection.model_validate(
        {"topics": ["t"], "format": "canal-json", "target": "lake.{database}.{table}"}
    )

    def fails(topics: object) -> dict[str, str]:
        raise error

    nowhere = {"bootstrap.servers": "127.0.0.1:1"}
    resolver = PositionResolver(
        nowhere, "g", section, lambda: Loaded(None), False, 0.01, check_topics=fails
    )
    with pytest.raises(PositionError) as raised:
        resolver([TopicPartition("t", 0)])
    assert type(raised.value) is kind


class StubClient:
    """A broker that takes questions. ``answer``: what its descriptions say, None: nothing."""

    def __init__(self, answer: KafkaError | None = None) -> None:
        self._answer = answer

    def list_topics(self, timeout: float) -> None:
        """It is there."""

    def describe_topics(self, topics: Any, request_timeout: float) -> dict[str, Future[Any]]:
        future: Future[Any] = Future()
        if self._answer is not None:
            future.set_exception(KafkaException(self._answer))
        return dict.fromkeys(topics.topic_names, future)


def test_a_broker_that_never_answers_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether the client's patience ends first or ours: the start says so in a line."""
    monkeypatch.setattr(admin_module, "AdminClient", lambda settings: StubClient())
    with pytest.raises(NotAnswered, match=r"topic 't': no answer within 0\.01 s") as raised:
        Admin({}, 0.01).ids(["t"])
    assert raised.value.away


@pytest.mark.parametrize(
    ("code", "kind", "away"),
    [
        (KafkaError.UNKNOWN_TOPIC_OR_PART, TopicMissing, None),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, NotAnswered, False),
        (KafkaError._TRANSPORT, NotAnswered, True),
    ],
)
def test_a_topic_that_may_not_be_seen_is_not_missing(
    monkeypatch: pytest.MonkeyPatch, code: int, kind: type[Exception], away: bool | None
) -> None:
    """Who took it for missing would read what it holds as new once the right is granted."""
    monkeypatch.setattr(admin_module, "AdminClient", lambda settings: StubClient(KafkaError(code)))
    with pytest.raises(kind, match="topic 't'") as raised:
        Admin({}).ids(["t"])
    assert getattr(raised.value, "away", None) is away


def test_positions_of_thousands_of_partitions_are_queried_less_often() -> None:
    """At each poll where there are few; once a second at most."""
    found = [fetched.positions_every_s(count, busy=False) for count in (1, 500, 3000)]
    assert found == [0.001, 0.5, 1.0]
    assert fetched.positions_every_s(1, busy=True) == 1.0


def test_the_statistics_tell_what_is_connected() -> None:
    """A partition is away where no broker has it, or its own is not connected. Those that nobody
    reads, such as the client's own of number -1, say nothing. In the client's own form."""
    text = """{"brokers": {
        "h:1/1": {"state": "UP", "nodeid": 1}, "h:2/2": {"state": "DOWN", "nodeid": 2},
        "GroupCoordinator": {"state": "UP", "nodeid": -1}}, "topics": {"t": {"partitions": {
        "0": {"broker": 1, "desired": true}, "1": {"broker": 2, "desired": true},
        "2": {"broker": -1, "desired": true}, "3": {"broker": 2, "desired": false},
        "-1": {"broker": -1, "desired": false}}}}}"""
    away = frozenset({TopicPartition("t", 1), TopicPartition("t", 2)})
    assert fetched.source_state(text) == SourceState(True, away)
    assert not fetched.source_state(text.replace("UP", "INIT")).connected
    assert fetched.source_state("{}") == SourceState(False)
