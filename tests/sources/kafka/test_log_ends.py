"""How long an end counts as known, and what is said when it does not."""

from __future__ import annotations

from confluent_kafka import KafkaError, KafkaException
from structlog.testing import capture_logs

from offsets.position import TopicPartition
from sources.base.port import OPEN_S
from sources.kafka.log_ends import KNOWN_FOR_S, Answer, LogEndFigures, LogEnds, OpenTransaction

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


class Broker:
    """Answers as it is told, at a time of its own."""

    def __init__(self) -> None:
        self.now = 100.0
        self.says: Answer | Exception = Answer({A: 5, B: 7})

    def __call__(self) -> Answer:
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
    broker.says = Answer({A: 6, B: 8})
    ends.look()
    assert ends.figures() == LogEndFigures({A: 6, B: 8}, None, None)


def test_one_partition_without_a_leader_is_unknown_alone() -> None:
    """The others' ends go on; the whole is not known."""
    broker = Broker()
    ends = LogEnds(broker, broker.clock)
    ends.look()
    broker.now += KNOWN_FOR_S + 1
    broker.says = Answer({A: 6}, "t:1: no leader")
    ends.look()
    assert ends.figures() == LogEndFigures({A: 6}, KNOWN_FOR_S + 1, "t:1: no leader")


def test_an_open_transaction_is_told_once_and_its_end() -> None:
    """One that ends at once is nobody's business; another one begins from anew."""
    broker = Broker()
    with capture_logs() as said:
        ends = LogEnds(broker, broker.clock)
        for stable in (3, 4):
            broker.says = Answer({A: 5, B: 7}, stable={A: stable})
            ends.look()
            broker.now += OPEN_S - 1
            ends.look()
        assert ends.figures().open == {A: OpenTransaction(4, OPEN_S - 1)}
        assert said == []
        broker.now += 1
        ends.look()
        ends.look()
        (told,) = said
        assert (told["event"], told["source"], told["offset"], told["messages"]) == (
            "open_transaction", "t:0", 4, 1,
        )  # fmt: skip
        broker.says = Answer({A: 5, B: 7})
        ends.look()
        assert [event["event"] for event in said] == ["open_transaction", "open_transaction_ended"]
        assert ends.figures().open == {}
