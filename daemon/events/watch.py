"""Watches the status document, and delivers what begins and ends: to a file, to a webhook."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from collections import deque
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import structlog

from daemon.config.sections import EventsSection
from daemon.events.conditions import Condition, conditions

EVERY_S = 10.0
"""Between two looks."""

POST_WITHIN_S = 5.0
"""The limit for one delivery."""

MOST_WAITING = 1000
"""Events that wait for a webhook that is away. Then the oldest go, and their number is reported."""


class EventWatch:
    """A thread that runs with the daemon. What is not well at its end stays begun: the next run
    reports it again."""

    def __init__(
        self, section: EventsSection, run: str, status: Callable[[], Mapping[str, Any]]
    ) -> None:
        self._file = Path(section.file) if section.file else None
        self._webhook = section.webhook
        self._run = run
        self._status = status
        self._open: dict[Condition, str] = {}
        self._waiting: deque[dict[str, Any]] = deque()
        self._lost = 0
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="events", daemon=True)
        self._log = structlog.get_logger().bind(actor="events")

    def start(self) -> None:
        """Start, if events go anywhere."""
        if self._file is not None or self._webhook:
            self._thread.start()

    def close(self) -> None:
        """Stop. What waits for a webhook is not awaited."""
        self._closed.set()

    def look(self) -> None:
        """Look once, and deliver. On the thread."""
        now = conditions(self._status())
        for key, text in now.items():
            if key not in self._open:
                self._tell("begun", key, text)
        for key, text in self._open.items():
            if key not in now:
                self._tell("ended", key, text)
        self._open = now
        self._post()

    def _tell(self, event: str, key: Condition, text: str) -> None:
        kind, pipeline = key
        made = {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "event": event,
            "kind": kind,
            "pipeline": pipeline or None,
            "text": text,
            "run": self._run,
        }
        if self._file is not None:
            try:
                with self._file.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(made) + "\n")
            except OSError as error:
                self._log.error(
                    "event_not_written", reason=str(error), kind=kind, pipeline=pipeline, text=text
                )
        if self._webhook:
            if len(self._waiting) >= MOST_WAITING:
                self._waiting.popleft()
                self._lost += 1
            self._waiting.append(made)

    def _post(self) -> None:
        """Deliver in order; what is not taken is offered again at the next look."""
        while self._waiting and not self._closed.is_set():
            made = self._waiting[0] | ({"lost_before": self._lost} if self._lost else {})
            request = urllib.request.Request(
                self._webhook,
                data=json.dumps(made).encode(),
                headers={"Content-Type": "application/json"},
            )
            try:
                with urllib.request.urlopen(request, timeout=POST_WITHIN_S):
                    pass
            except (OSError, urllib.error.URLError) as error:
                self._log.warning(
                    "event_not_delivered", reason=str(error), waiting=len(self._waiting)
                )
                return
            self._waiting.popleft()
            self._lost = 0

    def _watch(self) -> None:
        while not self._closed.is_set():
            try:
                self.look()
            except Exception:
                # Nobody awaits this thread: without a report the events would end for no reason.
                self._log.exception("events_not_looked_for")
            self._closed.wait(EVERY_S)
