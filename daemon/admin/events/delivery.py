"""Delivers events to a webhook, on a thread of its own: a slow one holds up nothing else."""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import structlog

from daemon.admin.events.post import NotTaken, post

RETRY_BASE_S = 5.0
RETRY_MAX_S = 300.0
"""The wait after a failure doubles from one to the other."""

MOST_WAITING = 1000
"""Events that wait for a webhook that is away. Then the oldest go."""

KEPT_S = 24 * 3600.0
"""An event that could not be delivered for so long is news no more, and goes."""


class _Waiting(NamedTuple):
    since: float
    event: Mapping[str, Any]


class WebhookDelivery:
    """Delivers in order. ``add`` and ``close`` may be called by any thread.

    What is dropped is counted: in the log at once, and in ``lost_before`` of the next event that
    arrives.
    """

    def __init__(self, webhook: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._webhook = webhook
        self._clock = clock
        self._waiting: deque[_Waiting] = deque()
        self._lost = 0
        self._failures = 0
        self._news = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="events-webhook", daemon=True)
        self._log = structlog.get_logger().bind(actor="events")

    def start(self) -> None:
        """Begin to deliver."""
        self._thread.start()

    def close(self) -> None:
        """Stop. What waits is not awaited."""
        with self._news:
            self._closed = True
            self._news.notify_all()

    def add(self, event: Mapping[str, Any]) -> None:
        """Deliver it when its turn comes. Returns at once."""
        with self._news:
            if len(self._waiting) >= MOST_WAITING:
                self._drop("too many wait")
            self._waiting.append(_Waiting(self._clock(), event))
            self._news.notify_all()

    def _drop(self, why: str) -> None:
        gone = self._waiting.popleft()
        self._lost += 1
        kind, subject = gone.event.get("kind"), gone.event.get("subject")
        fields = {"reason": why, "kind": kind, "subject": subject, "lost": self._lost}
        self._log.error("event_dropped", **fields)

    def _run(self) -> None:
        while True:
            with self._news:
                self._news.wait_for(lambda: self._closed or bool(self._waiting))
                if self._closed:
                    return
            try:
                self.deliver()
            except Exception:
                # Nobody awaits this thread: without a report the events would end for no reason.
                self._log.exception("event_not_delivered")
                self._failures += 1
            with self._news:
                if self._failures and not self._closed:
                    self._news.wait_for(lambda: self._closed, self._wait_s())

    def _wait_s(self) -> float:
        return float(min(RETRY_MAX_S, RETRY_BASE_S * 2 ** min(self._failures - 1, 10)))

    def deliver(self) -> None:
        """Deliver the oldest, or count a failure. On the thread."""
        with self._news:
            while self._waiting and self._clock() - self._waiting[0].since > KEPT_S:
                self._drop(f"not taken for {KEPT_S / 3600:.0f} h")
            if not self._waiting:
                return
            first, lost = self._waiting[0], self._lost
        made = dict(first.event) | ({"lost_before": lost} if lost else {})
        try:
            post(self._webhook, json.dumps(made).encode(), "events.webhook")
        except NotTaken as error:
            self._failures += 1
            reason = str(error)
            waiting, retry = len(self._waiting), round(self._wait_s(), 1)
            self._log.warning(
                "event_not_delivered", reason=reason, waiting=waiting, retry_in_s=retry
            )
            return
        with self._news:
            self._failures, self._lost = 0, self._lost - lost
            if self._waiting and self._waiting[0] is first:
                self._waiting.popleft()
