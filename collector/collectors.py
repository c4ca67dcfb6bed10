"""All collectors of a daemon, and the worker that it starts for them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

import structlog

from actors.runtime.periodic import Periodic
from actors.runtime.program_keeper import KeptProgram, ProgramFigures, ProgramKeeper, ProgramTimes
from collector.collector import Collector
from collector.figures import CollectorFigures, left_figures
from collector.topics import keep_topics
from databases.base.errors import DatabaseError
from sources.base.port import NotAnswered
from sources.base.topics import UnfitTopic

LOOK_EVERY_S = 5.0
"""Between two rounds of a collector: a position that is lost, or a failed task, is seen so soon."""

SOON_S = 1.0
"""Between two rounds of one that is on its way up: loads wait until it reads."""

_END_WITHIN_S, _STOP_WITHIN_S = 5.0, 15.0
"""Of a round under way, and of the worker: after this it is killed, which loses nothing."""


class Collectors:
    """A thread a collector: a source that hangs holds up nobody else's. Any thread."""

    def __init__(
        self,
        collectors: Sequence[Collector],
        worker: KeptProgram | None,
        settings: ProgramTimes | None = None,
        left: Callable[[], Sequence[str]] = tuple,
    ) -> None:
        """``worker``: the program that is kept running; None where none is embedded. ``left``:
        collectors that ran here and have no section; raises OSError."""
        self.worker = worker
        self.keeper = ProgramKeeper([] if worker is None else [worker], settings)
        self._collectors: Mapping[str, Collector] = {one.name: one for one in collectors}
        self._threads = [_thread(one) for one in collectors]
        self._find_left = left
        self._left: Sequence[str] = ()
        self._begun_s = time.monotonic()

    def prepare(self) -> None:
        """Make their topics, which pipelines look for when they start. One that can't be had is in
        the log: its collector says it again, and its pipeline what it misses."""
        try:
            self._left = self._find_left()
        except OSError as error:
            log = structlog.get_logger().bind(actor="collector")
            log.error("collectors_left_behind_not_known", reason=str(error))
        for name, collector in self._collectors.items():
            try:
                keep_topics(collector.hands.wiring)
            except (NotAnswered, UnfitTopic) as error:
                log = structlog.get_logger().bind(actor="collector", collector=name)
                log.error("collector_topics_not_kept", reason=str(error))
            try:
                collector.guard()
            except (DatabaseError, OSError) as error:
                log = structlog.get_logger().bind(actor="collector", collector=name)
                log.warning("collector_source_not_asked", reason=str(error))

    def open(self) -> None:
        """Begin to look after them; returns at once."""
        if self.worker is not None:
            self.keeper.open()
        for thread in self._threads:
            thread.start()

    def of(self, name: str) -> Collector | None:
        """A collector by its name."""
        return self._collectors.get(name)

    def position(self, name: str) -> Mapping[str, object]:
        """See ``Collector.position``; empty where there is no such collector."""
        collector = self.of(name)
        return {} if collector is None else collector.position()

    @property
    def names(self) -> list[str]:
        """The collectors there are."""
        return sorted(self._collectors)

    def look_now(self) -> None:
        """Begin a round of each, or after the one under way."""
        for thread in self._threads:
            thread.wake()

    def figures(self) -> list[CollectorFigures]:
        """How each is now."""
        left_s = time.monotonic() - self._begun_s
        left = [left_figures(name, left_s) for name in self._left]
        return [self._collectors[name].figures() for name in self.names] + left

    def programs(self) -> list[ProgramFigures]:
        """How the worker is, where there is one."""
        return [] if self.worker is None else self.keeper.figures()

    def close(self) -> None:
        """Look after them no more. Connectors of an adopted Connect go on."""
        for thread in self._threads:
            thread.close()
        for thread in self._threads:
            thread.close(_END_WITHIN_S)
        for collector in self._collectors.values():
            collector.close()
        if self.worker is not None:
            self.keeper.close(_STOP_WITHIN_S)


def _thread(collector: Collector) -> Periodic:
    def every_s() -> float:
        return SOON_S if collector.begins else LOOK_EVERY_S

    name = f"collector-{collector.name}"
    return Periodic(name, collector.look, every_s, "collector", "collector_not_looked_at")
