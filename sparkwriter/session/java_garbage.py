"""Java objects that Python is done with: the JVM holds each until Python's collector finds it.

py4j's wrapper of an object and the wrappers of its methods point to each other, so letting go of
them frees nothing before the collector has looked. The daemon has it look seldom
(``daemon/staging/collector.py``), and to Python the hundreds that a write leaves are small. Behind
each stands a table's whole metadata of that moment: with 1,600 snapshots 220 writes held 900 MB of
the JVM's heap, 16 hold 70 (measured), and with ten times the snapshots ten times that.
"""

from __future__ import annotations

import gc
import itertools

CALLS_BETWEEN = 16
"""Of all writers together: half a second of small writes."""

LOOKS_BETWEEN = 8
"""From a look at everything to the next. To look at what is new takes milliseconds, but what is in
use then is old afterwards; to look at all takes 40 ms beside 60,000 messages that wait (measured:
a seventh of the rate if each look were one)."""

_NEW, _ALL = 1, 2
"""Generations of Python's collector: what came since the last look, and everything."""


class JavaGarbage:
    """Has the collector look after every so many calls of the sinks. Any thread."""

    def __init__(self, calls: int = CALLS_BETWEEN, looks: int = LOOKS_BETWEEN) -> None:
        self._calls = calls
        self._looks = looks
        # next() on a count is atomic under the GIL and in free-threaded Python alike.
        self._numbers = itertools.count(1)

    def called(self) -> None:
        """A call of a sink has ended, however it did."""
        looks, between = divmod(next(self._numbers), self._calls)
        if between == 0:
            gc.collect(_ALL if looks % self._looks == 0 else _NEW)
