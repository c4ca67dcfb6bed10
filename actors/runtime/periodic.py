"""Threads that look at something now and then, and the guard of all threads that nobody awaits."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import structlog

from changes.model.printable import reason_of


class Periodic:
    """A thread that calls ``act`` until it is closed. What ``act`` raises is logged as ``failed``,
    and the next round comes nevertheless: nothing would notice that the thread has ended."""

    def __init__(
        self,
        name: str,
        act: Callable[[], None],
        every_s: float | Callable[[], float],
        actor: str,
        failed: str,
    ) -> None:
        """``every_s``: the seconds between two rounds. ``actor``: whose events its faults are."""
        self._act = act
        self._every_s = every_s if callable(every_s) else lambda: every_s
        self._failed = failed
        self._log = structlog.get_logger().bind(actor=actor)
        self._closed = threading.Event()
        self._due = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    @property
    def closed(self) -> bool:
        """Whether it is to end. For ``act``, between two things that it does."""
        return self._closed.is_set()

    def start(self) -> None:
        """Begin with a first round."""
        self._thread.start()

    def wake(self) -> None:
        """Begin the next round now, or once the one under way has ended. Any thread."""
        self._due.set()

    def close(self, within_s: float = 0.0) -> None:
        """Begin no further round, and wait so long for the one under way."""
        self._closed.set()
        self._due.set()
        if within_s and self._thread.is_alive():
            self._thread.join(within_s)

    def _run(self) -> None:
        while not self._closed.is_set():
            try:
                self._act()
            except Exception:
                self._log.exception(self._failed)
            self._due.wait(self._every_s())
            self._due.clear()


@contextmanager
def threads_watched(died: Callable[[str, str], None]) -> Iterator[None]:
    """Call ``died`` with a thread's name and the reason if one ends by an exception that its own
    guard has let through. On that thread."""

    def told(args: threading.ExceptHookArgs) -> None:
        name = "?" if args.thread is None else args.thread.name
        reason = "" if args.exc_value is None else reason_of(args.exc_value)
        died(name, f"{args.exc_type.__name__}: {reason}")  # first: a log may be what is broken
        log = structlog.get_logger().bind(actor="threads")
        log.critical(
            "thread_died",
            thread=name,
            exc_info=(args.exc_type, args.exc_value, args.exc_traceback),
        )

    before = threading.excepthook
    threading.excepthook = told
    try:
        yield
    finally:
        threading.excepthook = before
