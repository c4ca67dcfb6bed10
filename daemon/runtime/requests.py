"""What the writers have been asked for and not answered yet, by pipeline.

A write outlives the actors that asked for it. Whoever takes a pipeline's actors away and starts
others in their place waits here first: an answer to the old ones would reach the new, and be
taken for theirs.
"""

from __future__ import annotations

import threading
import time
from collections import Counter

from actors.contract import messages as msg
from actors.contract.addresses import Address
from actors.runtime.shell import Directory, Endpoint


class Requests:
    """The writers' queue, as an endpoint that counts. Any thread."""

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
        """A writer has told the processor how a request ended: one word for each."""
        with self._changed:
            self._open[pipeline] -= 1
            self._changed.notify_all()

    def wait(self, pipeline: str, timeout_s: float) -> int:
        """Wait until none of a pipeline's is open; how many are still."""
        deadline = time.monotonic() + timeout_s
        with self._changed:
            while self._open[pipeline] > 0 and (left := deadline - time.monotonic()) > 0:
                self._changed.wait(left)
            return self._open[pipeline]


class WritersDirectory(Directory):
    """The directory as the writers have it: what they tell a processor answers its request."""

    def __init__(self, whole: Directory, requests: Requests) -> None:
        super().__init__()
        self._whole = whole
        self._requests = requests

    def tell(self, address: Address, message: object) -> None:
        """Leave the message first: who waits for the answers finds it told."""
        self._whole.tell(address, message)
        if address.role == "processor":
            self._requests.answered(address.pipeline)
