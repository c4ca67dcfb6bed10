"""Runs a store's slow sets one after another on a thread, each in bounded time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from offsets.store import StoreError

SET_TIMEOUT_S = 5.0
"""From a call of ``set`` to its end. A revoke waits 10 s for the committer, which waits here.
Longer: while a broker is away, the revoke would lose its commit too."""


class SetQueue:
    """Runs a store's sets in the order of the calls. Any thread may call."""

    def __init__(self, name: str, timeout_s: float) -> None:
        self._name = name
        self._timeout_s = timeout_s
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None

    @property
    def open(self) -> bool:
        """Whether it accepts sets."""
        return self._pool is not None

    def start(self) -> None:
        """Accept sets from now on."""
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(1, thread_name_prefix=self._name)

    def put(self, act: Callable[[float], None]) -> Future[None]:
        """Queue ``act``. It gets the seconds that it may take and raises StoreError."""
        deadline = time.monotonic() + self._timeout_s

        def run() -> None:
            left = deadline - time.monotonic()
            if left <= 0:
                raise StoreError(
                    f"{self._name}: not tried within {self._timeout_s:g} s, "
                    "the sets before it took so long"
                )
            act(left)

        with self._lock:
            if self._pool is None:
                refused: Future[None] = Future()
                refused.set_exception(StoreError(f"{self._name}: is not open"))
                return refused
            return self._pool.submit(run)

    def stop(self) -> None:
        """Accept no more sets, and wait for the accepted ones."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown()
