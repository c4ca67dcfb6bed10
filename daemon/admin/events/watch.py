"""Watches the status document, and reports what begins and ends: to a file, to a webhook."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import structlog

from actors.runtime.periodic import Periodic
from changes.model.printable import reason_of
from daemon.admin.events.delivery import WebhookDelivery
from daemon.admin.status import document as doc
from daemon.admin.status.conditions import Condition, ConditionKey
from daemon.admin.status.health import shown
from daemon.config.sections import EventsSection

EVERY_S = 10.0
"""Between two looks."""

MOST_BYTES = 16 << 20
"""Of the file: a longer one becomes ``FILE.1`` in place of the one before it."""


class EventWatch:
    """A thread that runs with the daemon. What is not well at its end stays begun: the next run
    reports it again."""

    def __init__(
        self,
        section: EventsSection,
        run: str,
        status: Callable[[], doc.Status],
    ) -> None:
        self._file = Path(section.file) if section.file else None
        self.delivery = WebhookDelivery(section.webhook) if section.webhook else None
        self._run = run
        self._status = status
        self._open: dict[ConditionKey, Condition] = {}
        self._rounds = Periodic("events", self.look, EVERY_S, "events", "events_not_looked_for")
        self._log = structlog.get_logger().bind(actor="events")

    def start(self) -> None:
        """Start, if events go anywhere."""
        if self.delivery is not None:
            self.delivery.start()
        if self._file is not None or self.delivery is not None:
            self._rounds.start()

    def close(self) -> None:
        """Stop. What waits for a webhook is not awaited."""
        self._rounds.close()
        if self.delivery is not None:
            self.delivery.close()

    def look(self) -> None:
        """Look once, and report. On the thread."""
        now = {one.key: one for one in shown(self._status()) if one.is_news}
        for key, one in now.items():
            if key not in self._open:
                self._tell("begun", one)
        for key, one in self._open.items():
            if key not in now:
                self._tell("ended", one)
        self._open = now

    def _tell(self, event: str, one: Condition) -> None:
        made = {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "event": event,
            "kind": one.kind,
            "level": one.level,
            "pipeline": one.pipeline or None,
            "subject": one.subject or None,
            "targets": list(one.targets),
            "text": one.line,
            "command": one.command or None,
            "runbook": one.runbook or None,
            "run": self._run,
        }
        if self._file is not None:
            try:
                _append(self._file, json.dumps(made).encode() + b"\n")
            except OSError as error:
                fields = {"kind": one.kind, "pipeline": one.pipeline, "text": one.line}
                self._log.error("event_not_written", reason=reason_of(error), **fields)
        if self.delivery is not None:
            self.delivery.add(made)


def _append(path: Path, line: bytes) -> None:
    """Write a whole line. Raises OSError, at once where a pipe has no reader, or one that does not
    read: the webhook does not wait for it."""
    _make_room(path)
    way = os.O_RDWR if path.is_file() else os.O_WRONLY  # read: whether a full disk cut a line short
    with os.fdopen(
        os.open(path, way | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC, 0o666),
        "wb", buffering=0,
    ) as file:  # fmt: skip
        if way == os.O_RDWR and (size := os.fstat(file.fileno()).st_size):
            line = (b"" if os.pread(file.fileno(), 1, size - 1) == b"\n" else b"\n") + line
        written = file.write(line)
        if written != len(line):
            raise OSError(f"{written or 0} of {len(line)} bytes are written")


def _make_room(path: Path) -> None:
    """Raises OSError. A pipe or a device has no size to bound."""
    if path.is_file() and path.stat().st_size >= MOST_BYTES:
        path.replace(path.with_name(f"{path.name}.1"))
