"""How long an end counts as known, and what is said when it does not."""

from __future__ import annotations

from confluent_kafka import KafkaError, KafkaException

from daemon.kafka.log_ends import KNOWN_FOR_S, LogEndFigures, LogEnds
from offsets.position import TopicPartition

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


class Broker:
    """Answers as it is told, at a time of its own."""

    def __init__(self) -> None:
        self.now = 100.0
        self.says: tuple[dict[TopicPartition, int], str | None] | Exception = ({A: 5, B: 7}, None)

    def __call__(self) -> tuple[dict[TopicPartition, int], str | None]:
        if isinstance(self.says, Exception):
            raise self.says
        return self.says

    def clock(self) -> float:
        return self.now


def test_before_the_first_answer_nothing_is_known() -> None:
    """Not even that the logs are empty."""
    broker = Broker()
    ends = LogEnds(broker, broker.clock)
    broker.now += 2
    assert ends.figures() == LogEndFigures({}, 2.0, "no answer yet")


def test_an_end_is_known_until_it_is_old() -> None:
    """A question that fails does no harm; a broker that stays away does, and why is told."""
    broker = Broker()
    ends = LogEnds(broker, broker.clock)
    ends.look()
    broker.says = KafkaException(KafkaError(KafkaError._TRANSPORT))
    broker.now += KNOWN_FOR_S
    ends.look()
    assert ends.figures() == LogEndFigures({A: 5, B: 7}, None, None)
    broker.now += 1
    unknown = ends.figures()
    assert (dict(unknown.ends), unknown.unknown_s) == ({}, KNOWN_FOR_S + 1)
    assert unknown.error is not None
    assert "Broker transport failure" in unknown.error
    broker.says = ({A: 6, B: 8}, None)
    ends.look()
    assert ends.figures() == LogEndFigures({A: 6, B: 8}, None, None)


def test_one_partition_without_a_leader_is_unknown_alone() -> None:
    """The others' ends go on; the whole is not known."""
    broker = Broker()
    ends = LogEnds(broker, broker.clock)
    ends.look()
    broker.now += KNOWN_FOR_S + 1
    broker.says = ({A: 6}, "t:1: no leader")
    ends.look()
    assert ends.figures() == LogEndFigures({A: 6}, KNOWN_FOR_S + 1, "t:1: no leader")
