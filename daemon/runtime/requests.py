"""Counts the writers' open requests for each pipeline.

A write outlives the actors that requested it. Before a pipeline's actors are replaced, the edit
waits here. Otherwise the new actors would receive the answers to the old ones.
"""

from __future__ import annotations

import threading
import time
from collections import Counter

from actors.contract import messages as msg
from actors.contract.addresses import Address
from actors.runtime.shell import Directory, Endpoint


class Requests:
    """The writers' queue as an endpoint that counts. Any thread."""

    def __init__(self, queue: Endpoint) -> None:
        self._queue = queue
        self._changed = threading.Condition()
        self._open: Counter[str] = Counter()

    def tell(self, message: object) -> None:
        """Queue a request."""
        assert isinstance(message, msg.OpenTarget | msg.WriteBatch)
        with self._changed:
            self._open[message.reply_to.pipeline] += 1
        self._queue.tell(message)

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
