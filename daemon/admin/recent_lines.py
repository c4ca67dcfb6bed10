"""Keeps the last lines of the log about each target, for the page. In memory alone."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Sequence
from typing import Any

LINES = 20
"""Of a target."""

LONGEST = 500
"""Characters of a line. The log has all of it."""

MOST_TARGETS = 500
"""Those that were logged about last. 500 targets with 20 lines of 500 characters are 5 MB."""


class RecentLines:
    """A structlog processor: takes note of events with a target. Any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lines: OrderedDict[str, deque[str]] = OrderedDict()

    def __call__(self, _: Any, __: str, event: Any) -> Any:
        """Note the event, and pass it on. It has no secrets any more."""
        target = event.get("target")
        if isinstance(target, str):
            with self._lock:
                lines = self._lines.setdefault(target, deque(maxlen=LINES))
                lines.append(_line(event))
                self._lines.move_to_end(target)
                if len(self._lines) > MOST_TARGETS:
                    self._lines.popitem(last=False)
        return event

    def of(self, target: str) -> Sequence[str]:
        """A target's, the newest first."""
        with self._lock:
            return [*reversed(self._lines.get(target, ()))]


def _line(event: Any) -> str:
    known = ("timestamp", "level", "event", "target", "pipeline")
    more = (f"{name}={value}" for name, value in event.items() if name not in known)
    said = " ".join((event["timestamp"], event["level"], event["event"], *more))
    return said if len(said) <= LONGEST else said[: LONGEST - 1] + "…"
