"""Hands the writers' requests to the pool of their sink, and counts the open ones of each pipeline.

Each sink has writers of its own, so that one that is slow or away holds up no other's.

A write outlives the actors that requested it. Before a pipeline's actors are replaced, the edit
waits here. Otherwise the new actors would receive the answers to the old ones.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Mapping

from actors.contract import messages as msg
from actors.contract.addresses import Address
from actors.runtime.shell import Directory, Endpoint


class Requests:
    """The writers' queues, by sink, as one endpoint that counts. Any thread."""

    def __init__(self, queues: Mapping[str, Endpoint]) -> None:
        self._queues = queues
        self._changed = threading.Condition()
        self._open: Counter[str] = Counter()

    def tell(self, message: object) -> None:
        """Queue a request."""
        match message:
            case msg.OpenTarget(target):
                sink = target.sink
            case msg.WriteBatch(batch):
                sink = batch.target.sink
            case _:
                raise TypeError(f"a writer does not know {message!r}")
        with self._changed:
            self._open[message.reply_to.pipeline] += 1
        self._queues[sink].tell(message)

    def answered(self, pipeline: str) -> None:
        """A writer has sent the processor its answer. Each request has exactly one."""
        with self._changed:
            self._open[pipeline] -= 1
            self._changed.notify_all()

    def wait(self, pipeline: str, timeout_s: float) -> int:
        """Wait until no request of the pipeline is open. Returns how many still are."""
        deadline = time.monotonic() + timeout_s
        with self._changed:
            while self._open[pipeline] > 0 and (left := deadline - time.monotonic()) > 0:
                self._changed.wait(left)
            return self._open[pipeline]


class WritersDirectory(Directory):
    """The writers' directory: a message to a processor counts as the answer to its request."""

    def __init__(self, whole: Directory, requests: Requests) -> None:
        super().__init__()
        self._whole = whole
        self._requests = requests

    def tell(self, address: Address, message: object) -> None:
        """Deliver the message before the count falls: a waiting edit then finds it delivered."""
        self._whole.tell(address, message)
        if address.role == "processor":
            self._requests.answered(address.pipeline)
