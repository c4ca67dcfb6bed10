"""Sends the few lines of sd_notify that the daemon needs, without libsystemd.

Without ``$NOTIFY_SOCKET`` nothing is sent. Any thread may call; nothing here blocks for long.
"""

from __future__ import annotations

import os
import socket
from collections.abc import MutableMapping

import structlog

from changes.printable import printable

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
