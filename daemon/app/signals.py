"""SIGTERM and Ctrl-C: events for the supervisor while it listens, otherwise the end at once.

The handler only queues an event, because an exception in it would lose a batch. But events are
not read while Spark starts, a broker is queried, or the last things are closed. There a second
signal ends the process itself; the next start then finds everything.
"""

from __future__ import annotations

import os
import queue
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

import structlog

from actors.contract.messages import StopRequested
from settings.exit import Exit

STOPPED = b"binlogd: a second signal: stopped at once\n"


_TAKEN = (signal.SIGTERM, signal.SIGINT)


class StopSignals:
    """Handles both signals while it is entered. Does nothing outside the main thread."""

    def __init__(
        self, tell: Callable[[object], object], end: Callable[[int], object] = os._exit
    ) -> None:
        """``tell`` gets each signal, ``end`` ends the process with a status. Both interrupt the
        main thread anywhere, so neither may wait for a lock that it holds."""
        self._tell = tell
        self._end = end
        self._count = 0
        self._listening = False

    @contextmanager
    def handled(self) -> Iterator[None]:
        """Handle the signals; afterwards the earlier handlers are back."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.getsignal(number) for number in _TAKEN}
        self.take()
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def take(self) -> None:
        """Handle both again: Spark's driver, started meanwhile, takes Ctrl-C for itself, and
        would end the process with unwritten changes. Main thread; no effect elsewhere."""
        if threading.current_thread() is threading.main_thread():
            for number in _TAKEN:
                signal.signal(number, self._note)

    @contextmanager
    def listening(self) -> Iterator[None]:
        """The supervisor reads the events, so it decides what a second signal does."""
        self.take()
        self._listening = True
        try:
            yield
        finally:
            self._listening = False

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._count += 1
        if self._count > 1 and not self._listening:
            with suppress(OSError):  # its reader may be gone
                os.write(2, STOPPED)
            self._end(Exit.KILLED.value)
        self._tell(StopRequested(signal.Signals(number).name))


# SIGHUP: the daemon takes its changed configuration. Handled on a thread, never in the handler.


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
