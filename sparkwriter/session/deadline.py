"""The time that one call into the sink may take, and what is done when it is over."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

import structlog

log: Any = structlog.get_logger(__name__)


class Deadline:
    """Cancels a call after ``timeout_s``, and ``grace_s`` later kills what it still waits for.

    Used as a context around the call, on the caller's thread. The two steps run on threads of
    their own: asking a JVM that hangs to cancel something hangs as well.
    """

    def __init__(
        self,
        what: str,
        timeout_s: float,
        grace_s: float,
        cancel: Callable[[], None],
        kill: Callable[[], None],
    ) -> None:
        self._fields = {"call": what, "timeout_s": timeout_s, "grace_s": grace_s}
        self._cancel, self._kill = cancel, kill
        self._lock = threading.Lock()
        self._over = False
        self.passed = False
        """Whether the call took longer than it may."""
        self._timers = (
            threading.Timer(timeout_s, self._on_timeout),
            threading.Timer(timeout_s + grace_s, self._on_no_end),
        )
        for timer in self._timers:
            timer.daemon = True

    def __enter__(self) -> Self:
        for timer in self._timers:
            timer.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with self._lock:
            self._over = True
        for timer in self._timers:
            timer.cancel()

    def _on_timeout(self) -> None:
        with self._lock:
            if self._over:
                return
            self.passed = True
        log.warning("write_timed_out", **self._fields)
        try:
            self._cancel()
        except Exception as error:
            # What is asked to cancel may be what died, or hang until it is killed.
            log.warning("cancel_failed", reason=str(error), **self._fields)

    def _on_no_end(self) -> None:
        with self._lock:
            # Under the lock: a call that ends now waits, and finds its JVM killed; none later.
            if self._over:
                return
            log.error("jvm_hangs", **self._fields)
            self._kill()
