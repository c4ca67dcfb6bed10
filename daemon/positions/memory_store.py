"""Positions in memory only: for tests, and for pipelines that rely on Kafka's commit alone."""

from __future__ import annotations

import threading
from concurrent.futures import Future

from offsets.snapshot import Snapshot
from offsets.store import Loaded, StoreError, merged


class MemoryStore:
    """Holds positions while the process lives: a stop and a start keep them, a crash does not."""

    name = "memory"

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: Snapshot | None = None
        self._open = False

    def start(self) -> None:
        """Accept sets from now on."""
        with self._lock:
            self._open = True

    def get(self) -> Loaded:
        """The stored positions. Raises StoreError when not started."""
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
        """Accept no more sets."""
        with self._lock:
            self._open = False
