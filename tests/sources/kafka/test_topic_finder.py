"""Topics that come and go while a pipeline runs, as the fetcher's thread hears of them."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from offsets.position import TopicPartition
from sources.base.port import NotAnswered
from sources.base.topic_selection import TopicSelection
from sources.kafka import topic_finder
from sources.kafka.topic_finder import FollowedTopics, TopicFinder, refresh_settings

SHOP = TopicSelection(("^t",))


class Broker:
    """Its topics; None: it does not answer."""

    def __init__(self) -> None:
        self.topics: list[str] | None = []

    def names(self) -> list[str]:
        if self.topics is None:
            raise NotAnswered("nobody is there", away=True)
        return self.topics


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Broker:
    made = Broker()
    monkeypatch.setattr(topic_finder, "Admin", lambda settings, within_s: made)
    return made


class Rounds:
    """What the finder's thread would do, in the test's."""

    def __init__(self, broker: Broker, there: list[str], known: list[str], **more: bool) -> None:
        self._broker = broker
        self._finder = TopicFinder({}, SHOP, there)
        self.topics = FollowedTopics(self._finder, SHOP, there, known, "p", **more)
        self.topics._started = True  # no thread

    def look(self, *topics: str) -> bool:
        self._broker.topics = list(topics)
        self._finder.look()
        return self.topics.changed()


def test_a_new_topic_is_subscribed_to_at_once(broker: Broker) -> None:
    rounds = Rounds(broker, ["t1"], [])
    with capture_logs() as said:
        assert rounds.look("t1", "t2", "other")
    assert rounds.topics.topics == ["t1", "t2"]
    assert [(e["event"], e["topics"]) for e in said] == [("topics_found", ["t2"])]
    assert not rounds.look("t1", "t2")


def test_a_topic_is_gone_when_two_answers_lack_it(broker: Broker) -> None:
    """A broker that has just started may know less than there is: nothing is given up for that."""
    rounds = Rounds(broker, ["t1", "t2"], [])
    assert not rounds.look("t1")
    assert rounds.look("t1")
    assert (rounds.topics.topics, rounds.topics.gone) == (["t1"], frozenset({"t2"}))
    assert rounds.look("t1", "t2")
    assert (rounds.topics.topics, rounds.topics.gone) == (["t1", "t2"], frozenset())


def test_a_recorded_topic_that_is_not_there_is_gone_from_the_start(broker: Broker) -> None:
    """What was deleted while nothing ran is said, and the subscription is what it was. A topic that
    the patterns do not take any more is nobody's loss."""
    rounds = Rounds(broker, ["t1"], ["t0", "u"])
    assert rounds.look("t1")
    assert (rounds.topics.topics, rounds.topics.gone) == (["t1"], frozenset({"t0"}))
    assert not rounds.topics.missed


def test_a_broker_that_is_away_takes_no_topic_with_it(broker: Broker) -> None:
    rounds = Rounds(broker, ["t1"], [])
    broker.topics = None
    rounds._finder.look()
    assert not rounds.topics.changed()
    assert rounds.topics.topics == ["t1"]


def test_a_topic_that_was_assigned_and_not_found_is_asked_for_again(broker: Broker) -> None:
    """Nobody reads it: the group thinks that this member does."""
    rounds = Rounds(broker, ["t1", "t2"], [])
    one, two = TopicPartition("t1", 0), TopicPartition("t2", 0)
    rounds.topics.not_read([one, two], [one])
    assert rounds.look("t1", "t2")
    assert rounds.topics.missed
    assert not rounds.look("t1", "t2")
    assert not rounds.topics.missed


def test_a_run_over_what_is_there_takes_no_new_topic(broker: Broker) -> None:
    rounds = Rounds(broker, ["t1"], [], takes_new=False)
    assert not rounds.look("t1", "t2")
    assert rounds.topics.topics == ["t1"]


def test_the_refresh_is_sooner_where_there_are_patterns() -> None:
    name = topic_finder.REFRESH
    assert refresh_settings({}, SHOP)[name] == topic_finder.REFRESH_MS
    assert refresh_settings({name: 7}, SHOP)[name] == 7
    assert name not in refresh_settings({}, TopicSelection(("t",)))
