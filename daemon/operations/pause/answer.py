"""Pauses and resumes pipelines and targets of the running daemon, for the control socket."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pykka
import structlog

from actors.contract.addresses import Address
from actors.contract.messages import PauseReading, PauseTarget
from actors.runtime.shell import Directory
from changes.model.model import TargetName
from changes.routes.routing import Router
from daemon.config.config import Config
from daemon.operations.engine.record import Job
from daemon.state.control import Answer, ControlError
from daemon.state.pauses import Pause, Pauses

PAUSE, RESUME = "pause", "resume"

ANSWER_WITHIN_S = 4.0
"""The limit for the actors, which may be in a poll or decode a batch. Below a connection's."""


def pipeline_of_target(config: Config, name: str) -> str | None:
    """The pipeline of which a route leads to a target; None: no route does."""
    for pipeline in config.pipeline if name.count(".") == 2 else ():
        if Router(config.routes(pipeline)).reaches(TargetName.parse(name)):
            return pipeline
    return None


class PauseAnswer:
    """Answers on the control thread. The main thread gives it the actors once they run."""

    def __init__(
        self, config: Config, pauses: Pauses, jobs: Callable[[], Iterable[Job]] = tuple
    ) -> None:
        self._config = config
        self._pauses = pauses
        self._jobs = jobs
        self._directory: Directory | None = None
        self._log = structlog.get_logger().bind(actor="pauses")

    @property
    def answers(self) -> dict[str, Answer]:
        """The requests and their handlers."""
        return {PAUSE: self.pause, RESUME: self.resume}

    def watch(self, directory: Directory) -> None:
        """Ask these actors from now on."""
        self._directory = directory

    def pause(self, request: Mapping[str, Any]) -> str:
        """Record it, then have the actors follow: what a restart between the two would do. Raises
        ControlError."""
        name, pipeline = self._known(request)
        if name != pipeline and (why := self._refusal(name, pipeline)) is not None:
            raise ControlError(f"{name}: {why}")
        if name not in self._pauses.now():
            reason = str(request.get("reason") or "")
            self._put(name, Pause(time.time_ns() // 1_000_000, reason))
            self._log.warning("paused", name=name, reason=reason)
        self._have(name, pipeline, paused=True)
        if name == pipeline:
            return f"pipeline {name} is paused: it reads nothing more, what it has read is written"
        return f"{name} is paused: nothing is written, what comes is kept in its spill"

    def resume(self, request: Mapping[str, Any]) -> str:
        """The other way round. A target that no route leads to any more is only forgotten. Raises
        ControlError."""
        asked = request.get("name")
        try:
            name, pipeline = self._known(request)
        except ControlError:
            if not isinstance(asked, str) or asked not in self._pauses.now():
                raise
            self._put(asked, None)
            self._log.warning("resumed", name=asked)
            return f"{asked} is not paused any more; no route leads to it"
        what = f"pipeline {name}" if name == pipeline else name
        if name not in self._pauses.now():
            return f"{what} is not paused"
        self._put(name, None)
        self._log.warning("resumed", name=name)
        self._have(name, pipeline, paused=False)
        return f"{what} {'reads on' if name == pipeline else 'is written again'}"

    def _known(self, request: Mapping[str, Any]) -> tuple[str, str]:
        """What is meant, and its pipeline."""
        name = request.get("name")
        if not isinstance(name, str):
            raise ControlError('"name" is a pipeline or a target')
        if name in self._config.pipeline:
            return name, name
        if (pipeline := pipeline_of_target(self._config, name)) is not None:
            return name, pipeline
        known = ", ".join(sorted(self._config.pipeline))
        raise ControlError(f"{name!r}: no target of any route, and no pipeline; have: {known}")

    def _refusal(self, target: str, pipeline: str) -> str | None:
        if "file" not in self._config.pipeline[pipeline].offset_stores:
            return "its spill is a file, so offset_stores must have file, which lists it"
        for job in self._jobs():
            if target in job.wanted.targets and not job.state.is_final:
                return f"the job {job.id} works on it"
        return None

    def _put(self, name: str, pause: Pause | None) -> None:
        try:
            self._pauses.put(name, pause)
        except OSError as error:
            raise ControlError(f"it can't be recorded, and nothing was changed: {error}") from error

    def _have(self, name: str, pipeline: str, *, paused: bool) -> None:
        deadline = time.monotonic() + ANSWER_WITHIN_S
        if name == pipeline:
            self._ask(Address(name, "fetcher"), PauseReading(paused), deadline)
            return
        for number in range(self._config.daemon.processors):
            address = Address(pipeline, "processor", number)
            self._ask(address, PauseTarget(name, paused), deadline)

    def _ask(self, actor: Address, message: object, deadline: float) -> None:
        """An actor that is just being replaced: the next one reads the record, or is asked."""
        directory = self._directory
        if directory is None or not directory.has(actor):
            return  # it is about to start, and reads the record
        while (left := deadline - time.monotonic()) > 0:
            future = directory.question(actor, message)
            try:
                future.get(timeout=left)
                return
            except pykka.Timeout:
                break
            except pykka.ActorDeadError:
                if directory.ref(actor).is_alive():
                    continue
                return  # it has ended; if it runs again, it reads the record
        raise ControlError(
            f"recorded, but {actor} has not answered within {ANSWER_WITHIN_S:g} s; ask again"
        )
