"""Reports to the service manager: ready, a line of status, and the watchdog's ping.

The ping is sent only while every actor and the main thread answer within their bound. Writers are
left out: a write may take as long as it takes, and the processors that wait for it answer.
"""

from __future__ import annotations

import os
import socket
from collections.abc import MutableMapping
from typing import Any

import structlog

from actors.runtime.periodic import Periodic
from changes.model.printable import printable
from daemon.admin.status.conditions import UNREADY
from daemon.admin.status.health import shown
from daemon.admin.status.metrics import Status
from settings.counted import counted

# Sends the few lines of sd_notify that the daemon needs, without libsystemd.

SEND_TIMEOUT_S = 1.0
"""The manager always reads; one that doesn't must not block a thread."""


class Notifier:
    """One service's line to its manager."""

    def __init__(self, address: str | None, watchdog_s: float | None = None) -> None:
        """``address`` as in ``$NOTIFY_SOCKET``: a path, or ``@name`` in the abstract namespace.

        ``watchdog_s``: the manager kills the process after so long without a ``watchdog()``.
        """
        self.watchdog_s = watchdog_s
        self._address = address
        self._failed = False

    @classmethod
    def from_environment(cls, environment: MutableMapping[str, str] | None = None) -> Notifier:
        """Read the variables and remove them from the environment, so that the JVM can't use
        them."""
        variables = os.environ if environment is None else environment
        address = variables.pop("NOTIFY_SOCKET", None)
        usec = variables.pop("WATCHDOG_USEC", "")
        pid = variables.pop("WATCHDOG_PID", str(os.getpid()))
        mine = usec.isdecimal() and int(usec) > 0 and pid == str(os.getpid())
        return cls(address or None, int(usec) / 1e6 if mine else None)

    @property
    def listening(self) -> bool:
        """Whether there is a manager."""
        return self._address is not None

    def ready(self) -> None:
        """The service is ready."""
        self._send("READY=1")

    def stopping(self, within_s: float) -> None:
        """The service is stopping, and needs at most so long."""
        self._send("STOPPING=1", f"EXTEND_TIMEOUT_USEC={int(within_s * 1e6)}")

    def still_starting(self, within_s: float) -> None:
        """Not ready yet, and not stuck: the manager shall wait that much longer."""
        self._send(f"EXTEND_TIMEOUT_USEC={int(within_s * 1e6)}")

    def watchdog(self) -> None:
        """The watchdog's ping: everything makes progress."""
        self._send("WATCHDOG=1")

    def status(self, text: str) -> None:
        """One line for ``systemctl status``."""
        self._send("STATUS=" + printable(" ".join(text.split())))

    def _send(self, *lines: str) -> None:
        if self._address is None:
            return
        place = self._address
        if place.startswith("@"):
            place = "\0" + place[1:]
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sock:
                sock.settimeout(SEND_TIMEOUT_S)
                sock.connect(place)
                sock.sendall("\n".join(lines).encode())
        except OSError as error:
            if not self._failed:  # once: otherwise it would be logged every few seconds
                self._failed = True
                log = structlog.get_logger().bind(actor="monitor")
                log.warning("notify_failed", socket=self._address, reason=str(error))


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
        if _started(status) and not self._ready:
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


def _started(status: Any) -> bool:
    """Whether nothing is on its way up: a pipeline that has failed waits for a person, and a
    manager that waits with it would end the process."""
    unready = {one.kind for one in shown(status)} & UNREADY
    return bool(status["ready"]) or unready == {"pipeline_failed"}


def summary(status: Any) -> str:
    """The status in one line."""
    # Without seconds: each other line is sent.
    ill = [one for one in shown(status) if one.level == "ill"]
    if stuck := [one.subject for one in ill if one.kind == "stuck"]:
        return f"stuck: {', '.join(stuck)}"
    if failed := [one for one in ill if one.kind == "pipeline_failed"]:
        more = f" and {len(ill) - 1:,} more not well" if len(ill) > 1 else ""
        return f"{failed[0].who} {failed[0].line}{more}; {failed[0].command}"
    if ill:
        more = f" and {len(ill) - 1:,} more" if len(ill) > 1 else ""
        return f"{status['state']}; not well: {ill[0].kind} of {ill[0].who}{more}"
    parts = [
        f"{p['pipeline']}: {p['failure'] or p['stage']}, {_behind(p['lag_messages'])}"
        for p in status["pipelines"]
    ]
    return f"{status['state']}; {'; '.join(parts)}"


def _behind(messages: int | None) -> str:
    return "lag unknown" if messages is None else f"{counted(messages, 'message')} behind"
