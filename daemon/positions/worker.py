"""Sets that take their time: one after the other on a thread of their own, each in bounded time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from offsets.store import StoreError

SET_TIMEOUT_S = 5.0
"""From a call of ``set`` to its end. A revoke waits 10 s for the committer, which waits here: with
more, a broker that is away would cost the revoke its commit too."""


class SetQueue:
    """Carries out a store's sets in the order of the calls. Any thread may call."""

    def __init__(self, name: str, timeout_s: float) -> None:
        self._name = name
        self._timeout_s = timeout_s
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None

    @property
    def open(self) -> bool:
        """Whether it takes sets."""
        return self._pool is not None

    def start(self) -> None:
        """Take sets from now on."""
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(1, thread_name_prefix=self._name)

    def put(self, act: Callable[[float], None]) -> Future[None]:
        """Have ``act`` called with the seconds that it may take. It raises StoreError."""
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
        """Take no more; return when those that were taken have ended."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown()
