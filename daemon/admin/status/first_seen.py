"""Since when each condition of the status document is there."""

from __future__ import annotations

import threading
import time

from actors.runtime.mailbox import Clock
from daemon.admin.status import document as doc
from daemon.admin.status.conditions import ConditionKey
from daemon.admin.status.health import shown


class FirstSeen:
    """Since when each condition is there, where the document does not say. Any thread."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._since: dict[ConditionKey, float] = {}

    def fill(self, status: doc.Status) -> doc.Status:
        """Give the document's conditions the seconds that they lack: since they were first seen,
        so at least so long."""
        with self._lock:
            now = self._clock()
            found = shown(status)
            self._since = {one.key: self._since.get(one.key, now) for one in found}
            for one, member in zip(found, status["conditions"], strict=True):
                if one.seconds is None:
                    member["seconds"] = round(now - self._since[one.key], 3)
        return status
