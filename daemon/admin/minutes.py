"""What is done once a minute: the state directory is measured, and the log says what each pipeline
has written; nothing where it has written nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import structlog

from actors.runtime.periodic import Periodic
from daemon.admin.status import document as doc

EVERY_S = 60.0
"""One event a pipeline: 300 kB a day. Each write is an event of the level debug."""


class _Counts(NamedTuple):
    messages: int
    rows: int
    writes: Mapping[str, int]
    """By target."""


class MinuteLog:
    """A thread of its own looks at the status document."""

    def __init__(
        self, status: Callable[[], doc.Status], measure: Callable[[], None] = lambda: None
    ) -> None:
        """``measure`` is called on the thread, too; what it raises is logged."""
        self._status, self._measure = status, measure
        self._before: dict[str, _Counts] = {}
        self._log = structlog.get_logger().bind(actor="minutes")
        self._rounds = Periodic("minutes", self.look, EVERY_S, "minutes", "minute_not_logged")

    def start(self) -> None:
        """Begin to count."""
        self._rounds.start()

    def close(self) -> None:
        """Stop."""
        self._rounds.close()

    def look(self) -> None:
        """Log what was written since the last look. On the thread of its own."""
        before, self._before = self._before, {}
        for pipeline in self._status()["pipelines"]:
            name = pipeline["pipeline"]
            self._before[name] = now = _counts(pipeline)
            if name in before:
                self._tell(pipeline, before[name], now)
        self._measure()

    def _tell(self, pipeline: doc.Pipeline, before: _Counts, now: _Counts) -> None:
        known = before.writes
        writes = {name: grown(n, known.get(name, 0)) for name, n in now.writes.items()}
        if not any(writes.values()):
            return
        self._log.info(
            "progress",
            pipeline=pipeline["pipeline"],
            messages=grown(now.messages, before.messages),
            rows=grown(now.rows, before.rows),
            writes=sum(writes.values()),
            targets=sum(count > 0 for count in writes.values()),
            lag_messages=pipeline["lag_messages"],
            lag_seconds=pipeline["lag_seconds"],
            freshness_seconds=pipeline["freshness_seconds"],
        )


def _counts(pipeline: doc.Pipeline) -> _Counts:
    writes = {target["target"]: target["writes"] for target in pipeline["targets"]}
    return _Counts(pipeline["messages_read"], pipeline["rows_written"], writes)


def grown(now: int, before: int) -> int:
    """A pipeline that was started again counts from 0."""
    return now - before if now >= before else now
