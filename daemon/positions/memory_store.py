"""Positions that end with the process: for tests, and where Kafka's commit is trusted alone."""

from __future__ import annotations

import threading
from concurrent.futures import Future

from offsets.snapshot import Snapshot
from offsets.store import Loaded, StoreError, merged


class MemoryStore:
    """Holds what was set while the process lives: a stop and a start keep it, a crash does not."""

    name = "memory"

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: Snapshot | None = None
        self._open = False

    def start(self) -> None:
        """Take sets from now on."""
        with self._lock:
            self._open = True

    def get(self) -> Loaded:
        """What was set. Raises StoreError when not started."""
        with self._lock:
            if not self._open:
                raise StoreError(f"{self.name}: is not open")
            return Loaded(self._held)

    def set(self, batch: Snapshot) -> Future[None]:
        """Done when it returns."""
        done: Future[None] = Future()
        with self._lock:
            if self._open:
                self._held = merged(self._held, batch)
                done.set_result(None)
            else:
                done.set_exception(StoreError(f"{self.name}: is not open"))
        return done

    def stop(self) -> None:
        """Take no more sets."""
        with self._lock:
            self._open = False
