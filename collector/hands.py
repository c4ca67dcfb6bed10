"""What people ask of a collector: pause, resume, restart, reset, remove."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

import structlog

from collector.connect.rest import ConnectAway, ConnectRest
from collector.connector.config import connector_name
from collector.failures import Failures
from collector.memory import CollectorMemory
from collector.position import NewPosition
from collector.source_watch import SourceWatch
from collector.topics import data_topics, history_topics
from collector.wiring import Wiring

_FORGOTTEN = dict.fromkeys(("put", "lost", "identity", "by_file", "begun", "unread", "doubt"), "")
"""What was of a former position."""


@dataclass(frozen=True, slots=True)
class Hands:
    """Any thread: between two rounds of its collector, whose ``lock`` it is. All methods raise
    ConnectError, DatabaseError, NotAnswered, OSError."""

    wiring: Wiring
    memory: CollectorMemory
    source: SourceWatch
    failures: Failures
    lock: threading.RLock

    def pause(self) -> None:
        """No task, so no connection to the source; the position stays."""
        with self.lock:
            self._rest().stop(self._connector)

    def resume(self) -> None:
        """Read on from the position; a removed connector starts again from the beginning."""
        with self.lock:
            rest = self._rest()
            if self.memory.now.removed:
                self.memory.note(removed="", loads="due")
            else:
                rest.resume(self._connector)

    def restart(self) -> None:
        """Begin again at the position; where it was taken for lost, it is looked at again."""
        with self.lock:
            rest, lost = self._rest(), bool(self.memory.now.lost)
            self.memory.note(lost="", doubt="")
            self.failures.forget()
            if lost and rest.config(self._connector) is not None:
                rest.resume(self._connector)
            elif not lost:
                rest.restart(self._connector)

    def reset(self) -> None:
        """Begin at the source's present, without what was before. Once it reads, its tables are
        loaded."""
        with self.lock:
            rest = self._rest()
            self.memory.note(loads="due")
            NewPosition(self.wiring, rest, self.source, self._connector).take()
            # The next round creates it, as its section is now: this one may have a former topic.
            rest.remove(self._connector)
            self.memory.note(**_FORGOTTEN)
            self.failures.forget()
            self._log.warning("collector_reset", tables=list(self.wiring.patterns()))

    def remove(self, topics: bool) -> list[str]:
        """Remove the connector with its position and its slot, and by choice its topics; gives the
        topics that went. It stays away until it is resumed."""
        with self.lock:
            rest = self._rest()
            self.memory.note(removed="by hand")
            if rest.config(self._connector) is not None:
                NewPosition(self.wiring, rest, self.source, self._connector).take()
                rest.remove(self._connector)
            self.wiring.files.forget_secrets(self.wiring.name)
            self.memory.note(loads="", **_FORGOTTEN)
            self._log.warning("collector_removed", topics=topics)
            every = [*data_topics(self.wiring), *history_topics(self.wiring)]
            return self.wiring.topics().remove(every) if topics else []

    @property
    def _connector(self) -> str:
        return connector_name(self.wiring.name)

    @property
    def _log(self) -> Any:
        return structlog.get_logger().bind(actor="collector", collector=self.wiring.name)

    def _rest(self) -> ConnectRest:
        rest = self.wiring.rest()
        if rest is None:
            raise ConnectAway("Kafka Connect is not up yet")
        return rest
