"""What the writers owe a pipeline, counted."""

from __future__ import annotations

import threading
from dataclasses import replace

from actors.contract import messages as msg
from actors.contract.addresses import Address
from actors.runtime.shell import Directory
from changes.model import TargetName
from daemon.runtime.requests import Requests, WritersDirectory


class Kept:
    """An endpoint that keeps what it is sent."""

    def __init__(self) -> None:
        self.sent: list[object] = []

    def tell(self, message: object) -> None:
        self.sent.append(message)


def opening(pipeline: str) -> msg.OpenTarget:
    return msg.OpenTarget(TargetName("lake", "shop", "t"), Address(pipeline, "processor"))


def rig() -> tuple[Requests, WritersDirectory]:
    requests, whole = Requests({"lake": Kept()}), Directory()
    for name in ("a", "b"):
        for role in ("processor", "committer"):
            whole.add_endpoint(Address(name, role), Kept())
    return requests, WritersDirectory(whole, requests)


def test_a_request_is_open_until_its_processor_is_told() -> None:
    """What the committer hears before that is no answer."""
    requests, directory = rig()
    requests.tell(opening("a"))
    directory.tell(Address("a", "committer"), "written")
    assert requests.wait("a", 0.0) == 1
    directory.tell(Address("a", "processor"), "written")
    assert requests.wait("a", 0.0) == 0


def test_pipelines_are_counted_apart() -> None:
    """The write of one is no reason to wait for another."""
    requests, directory = rig()
    requests.tell(opening("a"))
    assert requests.wait("b", 0.0) == 0
    directory.tell(Address("a", "processor"), "written")
    assert requests.wait("a", 0.0) == 0


def test_who_waits_is_woken_by_the_answer() -> None:
    """Not by the time being over."""
    requests, directory = rig()
    requests.tell(opening("a"))
    found: list[int] = []
    waiting = threading.Thread(target=lambda: found.append(requests.wait("a", 60.0)))
    waiting.start()
    directory.tell(Address("a", "processor"), "written")
    waiting.join(30)
    assert found == [0]


def test_each_sink_has_its_own_queue() -> None:
    """What waits for one sink's writers is not behind another's."""
    queues = {"lake": Kept(), "copy": Kept()}
    requests = Requests(queues)
    there = opening("a")
    elsewhere = replace(there, target=TargetName("copy", "shop", "t"))
    requests.tell(there)
    requests.tell(elsewhere)
    assert (queues["lake"].sent, queues["copy"].sent) == ([there], [elsewhere])
