"""How long what is known of the logs counts, and what is said when it does not."""

from __future__ import annotations

from structlog.testing import capture_logs

from offsets.position import TopicPartition
from sources.base.log_figures import OPEN_S, KeptRecords, LogEnds, LogFigures, OpenTransaction
from sources.base.log_watch import KEPT_EVERY_S, KEPT_FOR_S, KNOWN_FOR_S, LogWatch
from sources.base.port import NotAnswered

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


class Broker:
    """Answers as the test says, at a time of its own."""

    def __init__(self) -> None:
        self.now = 100.0
        self.says: LogEnds | NotAnswered = LogEnds({A: 5, B: 7})
        self.keeps: KeptRecords | NotAnswered = KeptRecords()

    def ends(self) -> LogEnds:
        if isinstance(self.says, NotAnswered):
            raise self.says
        return self.says

    def kept(self) -> KeptRecords:
        if isinstance(self.keeps, NotAnswered):
            raise self.keeps
        return self.keeps

    def clock(self) -> float:
        return self.now


def test_before_the_first_answer_nothing_is_known() -> None:
    """Not even that the logs are empty."""
    broker = Broker()
    ends = LogWatch(broker, broker.clock)
    broker.now += 2
    assert ends.figures() == LogFigures({}, 2.0, "no answer yet")


def test_an_end_is_known_until_it_is_old() -> None:
    """A question that fails does no harm; a broker that stays away does, and why is told."""
    broker = Broker()
    ends = LogWatch(broker, broker.clock)
    ends.look()
    broker.says = NotAnswered("nobody is there", away=True)
    broker.now += KNOWN_FOR_S
    ends.look()
    assert ends.figures() == LogFigures({A: 5, B: 7}, None, None)
    broker.now += 1
    unknown = ends.figures()
    assert (dict(unknown.ends), unknown.unknown_s) == ({}, KNOWN_FOR_S + 1)
    assert unknown.error == "nobody is there"
    broker.says = LogEnds({A: 6, B: 8})
    ends.look()
    assert ends.figures() == LogFigures({A: 6, B: 8}, None, None)


def test_one_partition_without_a_leader_is_unknown_alone() -> None:
    """The others' ends go on; the whole is not known."""
    broker = Broker()
    ends = LogWatch(broker, broker.clock)
    ends.look()
    broker.now += KNOWN_FOR_S + 1
    broker.says = LogEnds({A: 6}, "t:1: no leader")
    ends.look()
    assert ends.figures() == LogFigures({A: 6}, KNOWN_FOR_S + 1, "t:1: no leader")


def test_an_open_transaction_is_told_once_and_its_end() -> None:
    """One that ends at once is nobody's business; another one begins anew."""
    broker = Broker()
    with capture_logs() as said:
        ends = LogWatch(broker, broker.clock)
        for stable in (3, 4):
            broker.says = LogEnds({A: 5, B: 7}, stable={A: stable})
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
        broker.says = LogEnds({A: 5, B: 7})
        ends.look()
        assert [event["event"] for event in said] == ["open_transaction", "open_transaction_ended"]
        assert ends.figures().open == {}


def test_what_is_kept_counts_for_a_while() -> None:
    """Through a broker's restart, not for ever; and it is asked for now and then."""
    broker = Broker()
    watch, kept = LogWatch(broker, broker.clock), KeptRecords({A: 2})
    broker.keeps = kept
    watch.look()
    asked_at, broker.keeps = broker.now, NotAnswered("away", away=True)
    broker.now += KEPT_EVERY_S
    watch.look()
    broker.now = asked_at + KEPT_FOR_S
    assert watch.figures().kept == kept
    broker.now += 1
    assert watch.figures().kept == KeptRecords()
    broker.keeps = KeptRecords({A: 3})
    watch.look()
    assert watch.figures().kept == KeptRecords({A: 3})


def test_a_retention_that_may_not_be_read_is_told_once() -> None:
    """Its alerts stay silent, whatever the lag is."""
    broker = Broker()
    watch = LogWatch(broker, broker.clock)
    broker.keeps = KeptRecords({A: 2}, refused="the user lacks DESCRIBE_CONFIGS")
    with capture_logs() as said:
        for _ in range(2):
            watch.look()
            broker.now += KEPT_EVERY_S
    assert [(each["event"], each["log_level"]) for each in said] == [
        ("retention_unknown", "warning")
    ]
    assert watch.figures().kept.starts == {A: 2}
