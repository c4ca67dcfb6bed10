"""Answers requests for the page: one document at a time, shared for a second.

So any number of readers costs the daemon what one reader costs.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from daemon.page.document import page, target_page
from daemon.page.history import INTERVAL_S, History
from daemon.page.view import View, target_of
from daemon.runtime.periodic import Periodic

SHARED_S = 1.0
"""How old a document may be. A reader asks every two seconds."""

MOST_SHARED = 32
"""Documents that are kept so long."""

Status = Callable[[], Mapping[str, Any]]
"""Returns the present status document."""


class PageDesk:
    """Any thread may ask. A thread of its own takes the samples of the history."""

    def __init__(self, status: Status, clock: Callable[[], float] = time.monotonic) -> None:
        self._status = status
        self._clock = clock
        self._history = History()
        self._lock = threading.Lock()
        self._shared: dict[tuple[str, str], tuple[float, str | None]] = {}
        self._rounds = Periodic("history", self.sample, INTERVAL_S, "web", "sample_not_taken")

    def start(self) -> None:
        """Begin to remember."""
        self._rounds.start()

    def close(self) -> None:
        """Stop."""
        self._rounds.close()

    def document(self, path: str, query: str) -> str | None:
        """The document of an address, None if there is none."""
        if path not in ("/", "/target"):
            return None
        key = (path, query)
        with self._lock:  # also while it is made: the others find it made
            now = self._clock()
            self._shared = {k: v for k, v in self._shared.items() if now - v[0] < SHARED_S}
            if key not in self._shared:
                if len(self._shared) >= MOST_SHARED:
                    self._shared.clear()
                self._shared[key] = (now, self._make(path, query))
            return self._shared[key][1]

    def sample(self) -> None:
        """Take one sample. On the history's thread."""
        self._history.sample(self._status())

    def _make(self, path: str, query: str) -> str | None:
        status = self._status()
        if path == "/":
            return page(status, self._history, View.of(query))
        return target_page(status, self._history, *target_of(query))
