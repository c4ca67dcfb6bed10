"""Ends the actors of a held pipeline, and builds those of its next life."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TypeVar

import structlog

from daemon.config.config import Config
from daemon.operate.mark_moves import MarksNotMoved
from daemon.operate.rebuilds import WHILE_RUNNING, RebuildNotEnded
from daemon.runtime.backoff import BackOff
from daemon.runtime.edits import Change, EditFailed, store_edit
from daemon.runtime.startup import BrokerAway, StartUp, Unusable
from daemon.runtime.topology import PipelineParts, Topology
from offsets.snapshot import Snapshot
from offsets.store import StoreError

END_ACTORS_S = 60.0
"""The limit for a pipeline's actors to end, and for a write that was cut off. A processor may be
decoding a batch, a fetcher may be waiting for a broker that is away."""

EDIT_PATIENCE_S = 300.0
"""How long an edit, or the swap of a rebuilt table's name, waits for a broker that is away. After
that the pipeline ends, and nothing restarts it. Longer: the operator waits for nothing."""

T = TypeVar("T")


class PipelineLives:
    """See ``daemon.runtime.edits.Lives``."""

    def __init__(
        self,
        config: Config,
        startup: StartUp,
        topology: Topology,
        changed: Callable[[Collection[str]], None],
    ) -> None:
        """``changed`` is called on the main thread when other pipelines run than before."""
        self.processors = config.daemon.processors
        self._changed = changed
        self.start = topology.start_pipeline
        self._config = config
        self._startup = startup
        self._topology = topology
        self._log = structlog.get_logger().bind(actor="supervisor")

    def open(self, pipeline: str) -> None:
        """See ``Lives``."""
        try:
            self._startup.open_store(pipeline)
        except Unusable as error:
            raise EditFailed(str(error)) from error

    def change(self, pipeline: str, change: Change) -> Snapshot:
        """See ``Lives``."""
        longest_s = max(sink.write_timeout_s for sink in self._config.sink.values())
        problem = self._topology.end_pipeline(pipeline, END_ACTORS_S, longest_s + END_ACTORS_S)
        if problem is not None:
            raise EditFailed(f"pipeline {pipeline} is not changed: {problem}")
        startup = self._startup
        store = startup.stores[pipeline]
        try:
            # Finish an earlier reset first: a change starts from what is recorded as done.
            last = self._patiently(lambda: startup.recorded(pipeline, store))
            before = startup.move_marks(pipeline, last)
            return startup.settle(pipeline, store_edit(store, before, change), WHILE_RUNNING)
        except (Unusable, StoreError, MarksNotMoved, RebuildNotEnded) as error:
            raise EditFailed(f"pipeline {pipeline} does not run: {error}") from error

    def parts(self, pipeline: str, recorded: Snapshot) -> PipelineParts:
        """See ``Lives``."""
        startup = self._startup
        store = startup.stores[pipeline]
        try:
            return self._patiently(lambda: startup.parts(pipeline, recorded, store))
        except (Unusable, StoreError) as error:
            raise EditFailed(f"pipeline {pipeline} does not run: {error}") from error

    def end(self, pipeline: str) -> None:
        """See ``Lives``."""
        self._startup.close_store(pipeline)

    def changed(self, pipelines: Collection[str]) -> None:
        """See ``Lives``."""
        self._topology.keep(pipelines)
        self._changed(pipelines)

    def _patiently(self, ask: Callable[[], T]) -> T:
        """Retry for a while: a broker that is away comes back, and need not end the pipeline."""

        def log_failure(error: Exception, attempt: int) -> None:
            self._log.warning("broker_away", reason=str(error), attempt=attempt)

        return BackOff(EDIT_PATIENCE_S).call(ask, (BrokerAway,), log_failure)
