"""A thread of transactions at a rate: the changes of a demo's source."""

from __future__ import annotations

import threading
import time

AT_ONCE = 20
"""Rows of one transaction."""


class Paced(threading.Thread):
    """Goes on until it is stopped. ``failure`` is what ended it otherwise.

    ``per_s``: rows a second, which may be changed meanwhile. ``done``: rows so far.
    """

    def __init__(self, per_s: float) -> None:
        super().__init__(daemon=True, name="changes")
        self.per_s, self.done = per_s, 0
        self.ended = threading.Event()
        self.failure: Exception | None = None

    def transaction(self) -> None:
        """One of ``AT_ONCE`` rows. On the thread."""
        raise NotImplementedError

    def run(self) -> None:
        """A transaction, then the time that is left of its share of a second."""
        due = time.monotonic()
        try:
            while not self.ended.wait(max(0.0, due - time.monotonic())):
                self.transaction()
                # Behind after a standstill it does not make up for all of it at once.
                due = max(due, time.monotonic() - 1.0) + AT_ONCE / self.per_s
        except Exception as error:  # ``stop`` raises it
            self.failure = error

    def stop(self) -> int:
        """End; how many rows there were. Raises what had ended it."""
        self.ended.set()
        self.join()
        if self.failure is not None:
            raise self.failure
        return self.done
