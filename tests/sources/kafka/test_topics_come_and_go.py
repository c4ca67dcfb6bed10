"""Topics of a pattern that come, go and come back in any order, beside a broker that is sometimes
away or knows less than there is, and reloads that exclude topics: what is read in the end is what
matches, and another topic of a former name is never read in silence."""

from __future__ import annotations

import random
from collections.abc import Collection
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest

from offsets.recovery import PositionError
from sources.base.port import NotAnswered
from sources.base.topic_selection import TopicSelection
from sources.kafka import topic_finder, topic_watch
from sources.kafka.topic_finder import FollowedTopics, TopicFinder
from sources.kafka.topic_watch import EVERY_S, TopicWatch

OWN = frozenset({"t.letters"})
NAMES = ["t.a", "t.b", "t.c", "t.d", "t.letters", "__t.e", "other"]


class Cluster:
    """A broker's topics with their ids, as its clients hear of them."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self.ids: dict[str, str] = {}
        self.away = False
        self.knows_less = False
        self._made = 0

    def change(self) -> None:
        """A topic comes, goes, or is made again at once."""
        name = self._rng.choice(NAMES)
        there = self.ids.pop(name, None) is not None
        if not there or self._rng.random() < 0.3:
            self._made += 1
            self.ids[name] = f"id-{self._made}"

    def names(self) -> list[str]:
        if self.away:
            raise NotAnswered("nobody is there", away=True)
        return [n for n in self.ids if not self.knows_less or self._rng.random() < 0.5]

    def described(
        self, topics: Collection[str], *, missing_too: bool = False
    ) -> dict[str, tuple[str, int]]:
        if self.away:
            raise NotAnswered("nobody is there", away=True)
        return {topic: (self.ids[topic], 1) for topic in topics if topic in self.ids}

    def ask_descriptions(self, topics: Collection[str]) -> dict[str, Future[Any]]:
        return {topic: self._answer(topic) for topic in topics}

    def _answer(self, topic: str) -> Future[Any]:
        answer: Future[Any] = Future()
        if self.away or topic not in self.ids:
            answer.set_exception(NotAnswered("no answer", away=self.away))
        else:
            answer.set_result(SimpleNamespace(topic_id=self.ids[topic], partitions=[0]))
        return answer


class Reader:
    """One run of a pipeline: what it subscribes to, and what it reads. ``recorded``: the ids that
    outlive it."""

    def __init__(
        self, cluster: Cluster, selection: TopicSelection, recorded: dict[str, str]
    ) -> None:
        self._cluster, self._recorded = cluster, recorded
        there = [*cluster.ids]
        self._finder = TopicFinder({}, selection, there)
        matched = selection.matching(there)
        self.topics = FollowedTopics(self._finder, selection, matched, recorded, "p")
        self.topics._started = True  # the finder's thread is this one
        known = {topic: id_ for topic, id_ in recorded.items() if selection.reads(topic)}
        self._watch = TopicWatch({}, known, selection.comes_and_goes)
        self._assigned: set[str] = set()
        self._now = 0.0
        self.stopped: str | None = None

    def poll(self) -> None:
        """As a source does it: follow, be assigned what is new, compare the ids."""
        self._now += EVERY_S
        self._finder.look()
        self.topics.changed()
        new = {t for t in self.topics.topics if t in self._cluster.ids} - self._assigned
        try:
            self._recorded |= self._watch.check(new)
            self._assigned = (self._assigned | new) & {*self.topics.topics}
        except PositionError as error:
            self.stopped = str(error)
        except NotAnswered:
            return
        for _ in range(2):  # asked, and answered
            self.stopped = self.stopped or self._watch.look(self._now)

    @property
    def reads(self) -> set[str]:
        """The topics that it reads now."""
        return self._assigned & self._cluster.ids.keys()


@pytest.mark.parametrize("block", range(4))
def test_what_matches_is_read_and_another_topic_of_that_name_stops_it(
    block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = {"stopped": 0, "gone": 0, "read": 0}
    for seed in range(100 * block, 100 * block + 100):
        one_history(random.Random(seed), monkeypatch, seen)
    assert all(count > 10 for count in seen.values()), seen


def one_history(rng: random.Random, monkeypatch: pytest.MonkeyPatch, seen: dict[str, int]) -> None:
    """Several runs of one pipeline, each with its own exclusions."""
    cluster, recorded = Cluster(rng), dict[str, str]()
    for module in (topic_finder, topic_watch):
        monkeypatch.setattr(module, "Admin", lambda settings, within_s: cluster)
    for _ in range(rng.randrange(1, 4)):
        excluded = tuple(rng.sample(["t.a", "^t\\.b", "t.c"], rng.randrange(3)))
        selection = TopicSelection(("^t\\.",), excluded, OWN)
        reader = Reader(cluster, selection, recorded)
        for _ in range(rng.randrange(2, 15)):
            if rng.random() < 0.5:
                cluster.change()
            cluster.away, cluster.knows_less = rng.random() < 0.2, rng.random() < 0.1
            reader.poll()
            if reader.stopped is not None:
                break
        cluster.away = cluster.knows_less = False
        for _ in range(3):
            reader.poll()
        seen["stopped"] += reader.stopped is not None
        if reader.stopped is not None:
            assert "deleted and recreated" in reader.stopped
            return
        wanted = {t for t in cluster.ids if t.startswith("t.") and t not in OWN}
        wanted -= {"t.b"} if "^t\\.b" in excluded else set()
        wanted -= set(excluded)
        assert reader.reads == wanted
        assert all(recorded[topic] == cluster.ids[topic] for topic in wanted), "another is read"
        assert reader.topics.gone.isdisjoint(wanted)
        seen["gone"] += bool(reader.topics.gone)
        seen["read"] += bool(wanted)
