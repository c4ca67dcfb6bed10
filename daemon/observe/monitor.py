"""Reports to the service manager: ready, a line of status, and the watchdog's ping.

The ping is sent only while every actor and the main thread answer within their bound. A writer is
not asked: a write may take as long as it takes, and the processors that wait for it answer.
"""

from __future__ import annotations

from typing import Any

import structlog

from daemon.observe.metrics import Status
from daemon.observe.notify import Notifier
from daemon.runtime.periodic import Periodic

INTERVAL_S = 5.0
"""Between two checks once it runs; a third of the watchdog's time if that is less."""

STARTING_INTERVAL_S = 0.25
"""Between two checks before it is ready, because other services wait for that."""

STARTING_S = 60.0
"""How much longer the manager shall wait while the group assigns partitions."""


class Monitor:
    """A thread that runs from the start of the actors until their stop."""

    def __init__(self, notifier: Notifier, status: Status) -> None:
        self._notifier = notifier
        self._status = status
        self._log = structlog.get_logger().bind(actor="monitor")
        self._rounds = Periodic(
            "monitor", self.look, lambda: self._interval_s, "monitor", "status_not_reported"
        )
        self._ready = False
        self._said = ""
        self._stuck: tuple[str, ...] = ()

    def start(self) -> None:
        """Start, if there is a manager."""
        if self._notifier.listening:
            self._rounds.start()

    def close(self) -> None:
        """Stop."""
        self._rounds.close(2.0)

    @property
    def _interval_s(self) -> float:
        longest = INTERVAL_S if self._ready else STARTING_INTERVAL_S
        return min(longest, (self._notifier.watchdog_s or 3 * INTERVAL_S) / 3)

    def look(self) -> None:
        """Check once, and report. On the monitor's thread."""
        status = self._status()
        self._tell_stuck(status)
        if status["ready"] and not self._ready:
            self._ready = True
            self._notifier.ready()
        elif not self._ready and status["healthy"] and status["state"] == "running":
            self._notifier.still_starting(STARTING_S)
        if status["healthy"] and self._notifier.watchdog_s is not None:
            self._notifier.watchdog()
        line = summary(status)
        if line != self._said:
            self._said = line
            self._notifier.status(line)

    def _tell_stuck(self, status: Any) -> None:
        stuck = tuple(silent["actor"] for silent in status["silent"] if silent["stuck"])
        if stuck != self._stuck:
            self._stuck = stuck
            if stuck:
                self._log.error("stuck", actors=list(stuck))
            else:
                self._log.info("no_longer_stuck")


def summary(status: Any) -> str:
    """The status in one line."""
    stuck = [silent["actor"] for silent in status["silent"] if silent["stuck"]]
    if stuck:
        return f"stuck: {', '.join(stuck)}"
    parts = [
        f"{p['pipeline']}: {p['failure'] or p['stage']}, {_behind(p['lag_messages'])}"
        for p in status["pipelines"]
    ]
    return f"{status['state']}; {'; '.join(parts)}"


def _behind(messages: int | None) -> str:
    return "lag unknown" if messages is None else f"{messages} messages behind"
