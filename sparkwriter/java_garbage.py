"""Java objects that Python is done with: the JVM holds each until Python's collector finds it.

py4j's wrapper of an object and the wrappers of its methods point to each other, so letting go of
them frees nothing before the collector has looked. The daemon has it look seldom
(``daemon/collector.py``), and to Python the hundreds that a write leaves are small. Behind each
stands a table's whole metadata of that moment: with 1,600 snapshots 220 writes held 900 MB of the
JVM's heap, 16 hold 70 (measured), and with ten times the snapshots ten times that.
"""

from __future__ import annotations

import gc
import itertools

CALLS_BETWEEN = 16
"""Of all writers together. A look takes milliseconds, sixteen small writes half a second."""


class JavaGarbage:
    """Has the collector look after every so many calls of the sinks. Any thread."""

    def __init__(self, calls: int = CALLS_BETWEEN) -> None:
        self._calls = calls
        # next() on a count is atomic under the GIL and in free-threaded Python alike.
        self._numbers = itertools.count(1)

    def called(self) -> None:
        """A call of a sink has ended, however it did."""
        if next(self._numbers) % self._calls == 0:
            gc.collect()
