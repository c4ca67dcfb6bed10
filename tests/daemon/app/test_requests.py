"""What the writers owe a pipeline, counted."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import cast

import pytest

from actors.contract import messages as msg
from actors.contract.addresses import Address
from actors.contract.writes import StagedBatch
from actors.runtime.shell import Directory
from changes.model.model import Mode, TableSchema, TargetName
from daemon.app.requests import Requests, WritersDirectory


class Kept:
    """An endpoint that keeps what it is sent."""

    def __init__(self) -> None:
        self.sent: list[object] = []

    def tell(self, message: object) -> None:
        self.sent.append(message)


TARGET = TargetName("lake", "shop", "t")
FAILED = msg.Failed(TARGET, msg.FailureKind.RETRY, "away")


CUTS = Address("a", "cuts")
WRITE = msg.WriteBatch(
    StagedBatch("1", TARGET, Mode.UPSERT, TableSchema((), ()), {}),
    {},
    {},
    Address("a", "processor"),
    None,
    CUTS,
)


def opening(pipeline: str) -> msg.OpenTarget:
    return msg.OpenTarget(TARGET, Address(pipeline, "processor"))


def rig() -> tuple[Requests, WritersDirectory]:
    requests, whole = Requests({"lake": Kept()}, 2), Directory()
    for name in ("a", "b"):
        for role in ("processor", "committer"):
            whole.add_endpoint(Address(name, role), Kept())
    return requests, WritersDirectory(whole, requests)


def test_a_request_is_open_until_its_processor_is_told() -> None:
    """What the committer hears before that is no answer."""
    requests, directory = rig()
    requests.tell(opening("a"))
    directory.tell(Address("a", "committer"), FAILED)
    assert requests.wait("a", 0.0) == 1
    directory.tell(Address("a", "processor"), FAILED)
    assert requests.wait("a", 0.0) == 0


def test_pipelines_are_counted_apart() -> None:
    """The write of one is no reason to wait for another."""
    requests, directory = rig()
    requests.tell(opening("a"))
    assert requests.wait("b", 0.0) == 0
    directory.tell(Address("a", "processor"), FAILED)
    assert requests.wait("a", 0.0) == 0


def test_who_waits_is_woken_by_the_answer() -> None:
    """Not by the time being over."""
    requests, directory = rig()
    requests.tell(opening("a"))
    found: list[int] = []
    waiting = threading.Thread(target=lambda: found.append(requests.wait("a", 60.0)))
    waiting.start()
    directory.tell(Address("a", "processor"), FAILED)
    waiting.join(30)
    assert found == [0]


def test_several_targets_that_are_written_together_have_an_answer_each() -> None:
    """One writer has them, and is free with the last one; or all are answered at once."""
    targets = [TARGET._replace(table=name) for name in ("t", "u", "v")]
    batches = [replace(WRITE.batch, target=each) for each in targets]
    several = msg.WriteTogether(tuple(replace(WRITE, batch=each) for each in batches), CUTS, 1.0)
    given, whole = Kept(), Directory()
    requests = Requests({"lake": given}, 2)
    for role in ("processor", "cuts"):
        whole.add_endpoint(Address("a", role), Kept())
    directory = WritersDirectory(whole, requests)
    requests.tell(several)
    requests.tell(opening("b"))
    requests.tell(opening("b"))
    assert given.sent == [several, opening("b")]  # the second writer is another pipeline's
    for target in targets:
        assert given.sent == [several, opening("b")]
        directory.tell(Address("a", "processor"), replace(FAILED, target=target))
    assert given.sent == [several, opening("b"), opening("b")]
    assert requests.wait("a", 0.0) == 0
    requests.answered("b", [TARGET])
    requests.tell(several)
    assert requests.wait("a", 0.0) == 3
    directory.tell(CUTS, msg.NotTogether(several.writes, None, "why"))
    assert requests.wait("a", 0.0) == 0


def test_each_sink_has_its_own_queue() -> None:
    """What waits for one sink's writers is not behind another's."""
    queues = {"lake": Kept(), "copy": Kept()}
    requests = Requests(queues, 2)
    there = opening("a")
    elsewhere = replace(there, target=TargetName("copy", "shop", "t"))
    requests.tell(there)
    requests.tell(elsewhere)
    assert (queues["lake"].sent, queues["copy"].sent) == ([there], [elsewhere])


class Writers:
    """Two writers of a sink. ``order``: the pipelines whose requests they were given."""

    def __init__(self, quotas: Mapping[str, int]) -> None:
        self.given = Kept()
        self.requests = Requests({"lake": self.given}, 2, quotas.get)

    @property
    def order(self) -> str:
        return "".join(cast(msg.OpenTarget, each).reply_to.pipeline for each in self.given.sent)

    def ask(self, pipelines: str) -> None:
        for pipeline in pipelines:
            self.requests.tell(opening(pipeline))

    def answer(self, pipelines: str) -> None:
        for pipeline in pipelines:
            self.requests.answered(pipeline, [TARGET])


def test_a_pipeline_with_much_does_not_keep_another_waiting() -> None:
    """The next writer that is free is the other's, however many wait before it."""
    writers = Writers({})
    writers.ask("aaaaaab")
    assert writers.order == "aa"
    writers.answer("a")
    assert writers.order == "aab"
    writers.answer("ab")
    assert writers.order == "aabaa"


def test_they_take_turns() -> None:
    writers = Writers({})
    writers.ask("aaaabbbb")
    for place in range(6):
        writers.answer(writers.order[place])
    assert writers.order == "aabababb"


def test_a_quota_keeps_a_writer_free_for_others() -> None:
    """Even for what comes when all of the first one's are in hand."""
    writers = Writers({"a": 1})
    writers.ask("aaa")
    assert writers.order == "a"
    writers.ask("b")
    assert writers.order == "ab"
    writers.answer("b")
    assert writers.order == "ab"
    writers.answer("aaa")
    assert (writers.order, writers.requests.wait("a", 0.0)) == ("abaa", 0)


@pytest.mark.parametrize("seed", range(20))
def test_nothing_is_lost_and_no_quota_is_passed(seed: int) -> None:
    """Whatever comes, and is answered, in whatever order."""
    chance, writers = random.Random(seed), Writers({"a": 1})
    asked, answered = Counter[str](), Counter[str]()
    for _ in range(200):
        name = chance.choice("abc")
        if chance.random() < 0.5 and Counter(writers.order)[name] > answered[name]:
            writers.answer(name)
            answered[name] += 1
        else:
            writers.ask(name)
            asked[name] += 1
        in_hand = Counter(writers.order) - answered
        assert in_hand["a"] <= 1
        assert in_hand.total() <= 2
    while left := [name for name in "abc" if Counter(writers.order)[name] > answered[name]]:
        writers.answer(left[0])
        answered[left[0]] += 1
    assert Counter(writers.order) == asked
