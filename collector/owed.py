"""What is owed to a collector's tables: a place in the publication, and rows that no record has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import structlog

from collector.memory import CollectorMemory
from collector.reasons import hint
from collector.source_watch import SourceWatch
from collector.wiring import Wiring
from databases.base.errors import DatabaseRefused

_LOAD_AGAIN_S = 60.0
"""Between two attempts to have the same loads recorded."""

_SHOWN = 3
"""Of tables that lack something."""


class Unpublished(Exception):
    """There is no publication, and none can be made: one line."""


class Owed:
    """One thread's at a time."""

    def __init__(
        self,
        wiring: Wiring,
        memory: CollectorMemory,
        source: SourceWatch,
        clock: Callable[[], float],
    ) -> None:
        self._wiring, self._memory, self._source = wiring, memory, source
        self._clock = clock
        self._unpublished: Mapping[str, str] = {}
        self._unloaded: Mapping[str, str] = {}
        self._again_s, self._tried = 0.0, set[str]()
        self._log: Any = structlog.get_logger().bind(actor="collector", collector=wiring.name)

    def publish(self, began: bool) -> None:
        """Have PostgreSQL tell of all tables that match. Those that join once reading has begun
        are to be loaded. Raises Unpublished before that; DatabaseAway, OSError."""
        try:
            late = self._memory.add_loads if began else None
            self._unpublished = self._source.publish(self._wiring.patterns(), late)
        except DatabaseRefused as error:
            line = "; ".join(filter(None, (str(error), hint(str(error), self._wiring.name))))
            if not began:
                raise Unpublished(f"the publication: {line}") from error
            self._unpublished = {"": f"the publication: {line}"}

    def load(self) -> None:
        """What was before a new position, or before a table joined, is in no record: have rows
        read again. A table that has not joined yet waits for that. Raises OSError."""
        if not self._memory.now.loads:
            return
        wanted, now = self._memory.loads(self._wiring.patterns()), self._clock()
        ready = [one for one in wanted if one not in self._unpublished]
        if not ready or (now < self._again_s and set(ready) <= self._tried):
            return
        self._again_s, self._tried = now + _LOAD_AGAIN_S, set(ready)
        self._unloaded = self._wiring.load(ready)
        self._tried |= set(self._unloaded)
        self._log.warning("collector_loads", tables=ready, refused=dict(self._unloaded))
        waiting = [one for one in wanted if one in self._unpublished]
        self._memory.set_loads([*waiting, *self._unloaded])

    def lines(self) -> str:
        """What its tables lack now, or nothing."""
        parts = []
        if self._unpublished:
            parts.append(f"changes that are not read: {_few(self._unpublished.values())}")
        if self._unloaded:
            parts.append(f"its tables need a load: {_few(self._unloaded.values())}")
        return "; ".join(parts)


def _few(lines: Iterable[str]) -> str:
    found = list(dict.fromkeys(lines))
    more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return "; ".join(found[:_SHOWN]) + more
