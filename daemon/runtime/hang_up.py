"""SIGHUP: the daemon takes its changed configuration. Handled on a thread, never in the handler."""

from __future__ import annotations

import queue
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import structlog


@contextmanager
def reloads_on_hang_up(reload: Callable[[], None]) -> Iterator[None]:
    """Call ``reload`` for SIGHUP while it is entered. Signals that come meanwhile are one more.

    Does nothing outside the main thread. Before it is entered SIGHUP ends the process, as ever.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    # Not an Event: a second signal interrupts the first one's handler, which would then wait for a
    # lock that its own thread holds.
    came: queue.SimpleQueue[bool] = queue.SimpleQueue()

    def note(number: int, frame: FrameType | None) -> None:
        came.put(True)

    def follow() -> None:
        while came.get():
            goes_on = True
            while goes_on and not came.empty():
                goes_on = came.get()
            if not goes_on:
                return
            try:
                reload()
            except Exception:
                # The next signal must find this thread.
                structlog.get_logger().bind(actor="reload").exception("reload_refused")

    threading.Thread(target=follow, name="hang-up", daemon=True).start()
    before = signal.signal(signal.SIGHUP, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)
        came.put(False)
