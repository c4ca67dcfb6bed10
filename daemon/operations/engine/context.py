"""What a job may ask of the running daemon: ``daemon.operations.engine.port.Control``, for one
job's thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from actors.contract.ports import ResettableSink
from daemon.config.config import Config
from daemon.config.pipeline_config import PipelineConfig
from daemon.operations.engine.effects import Asked
from daemon.operations.engine.port import JobAway, JobStopped
from daemon.operations.engine.record import JobProgress
from daemon.state.edits import Change, EditBusy, recorded_of
from daemon.state.pauses import Pauses
from databases.base.log_end import ReaderPosition
from offsets.snapshot import Snapshot
from offsets.store import OffsetStore
from sources.base.port import NotAnswered, Source
from sources.opening import open_source

if TYPE_CHECKING:
    from sparkwriter.session.jvm import SparkJvm
    from sparkwriter.sinks import SinkTier

T = TypeVar("T")

LOOK_UP_S = 0.5
"""How often an edit's wait looks whether the daemon is being stopped."""


@dataclass(frozen=True, slots=True)
class Daemon:
    """What the running daemon lends to its jobs. ``stores``: by pipeline, once they are open.
    ``reader_position``: of a collector, by its name."""

    config: Config
    tier: SinkTier
    stores: Callable[[], Mapping[str, OffsetStore]]
    edit: Callable[[str, Change], Future[None]]
    pauses: Pauses
    reader_position: Callable[[str], ReaderPosition]


class DaemonLook:
    """``daemon.operations.engine.port.Look`` in the running daemon."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon

    @property
    def config(self) -> Config:
        """See ``Look``."""
        return self._daemon.config

    def snapshot(self, pipeline: str) -> Snapshot:
        """See ``Look``."""
        store = self._daemon.stores().get(pipeline)
        if store is None:
            raise NotAnswered(f"pipeline {pipeline} was removed", away=False)
        return recorded_of(PipelineConfig(self.config, pipeline), store.get())

    def source(self, pipeline: str) -> Source:
        """See ``Look``."""
        return open_source(self.config, pipeline)

    def reader_position(self, pipeline: str) -> ReaderPosition:
        """See ``Look``."""
        collector = self.config.pipeline[pipeline].collector
        return {} if collector is None else self._daemon.reader_position(collector)


class StepContext(DaemonLook):
    """See ``Control``. ``ask`` is for any thread."""

    def __init__(self, daemon: Daemon, tell: Callable[[JobProgress, str], None]) -> None:
        super().__init__(daemon)
        self._show = tell
        self._asked: Asked = ""
        self._changed = threading.Event()
        self._sinks: Mapping[str, ResettableSink] | None = None

    def ask(self, asked: Asked) -> None:
        """Ask something of the step; a stop stays."""
        if self._asked != "stop":
            self._asked = asked
        if self._asked:
            self._changed.set()
        else:
            self._changed.clear()

    @property
    def asked(self) -> Asked:
        """See ``Control``."""
        return self._asked

    def wait(self, seconds: float) -> bool:
        """See ``Control``."""
        return self._changed.wait(seconds)

    def tell(self, progress: JobProgress, message: str = "") -> None:
        """See ``Control``."""
        self._show(progress, message)

    def sinks(self) -> Mapping[str, ResettableSink]:
        """See ``Control``."""
        if self._sinks is None:
            self._sinks = self._daemon.tier.sinks()
        return self._sinks

    def spark(self, act: Callable[[SparkJvm], T]) -> T:
        """See ``Control``."""
        return self._daemon.tier.with_spark(act)

    def edit(self, pipeline: str, change: Change) -> None:
        """See ``Control``."""
        done = self._daemon.edit(pipeline, change)
        while True:
            try:
                return done.result(LOOK_UP_S)
            except NotYet:
                if self.asked == "stop":
                    raise JobStopped from None
            except EditBusy as error:
                if self.asked == "stop":
                    raise JobStopped from error
                raise JobAway(str(error)) from error
