"""Pauses and resumes pipelines of the running daemon, for the control socket."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import pykka
import structlog

from actors.contract.addresses import Address
from actors.contract.messages import PauseReading
from actors.runtime.shell import Directory
from daemon.config.config import Config
from daemon.observe.control import Answer, ControlError
from daemon.pauses.store import Pause, Pauses

PAUSE, RESUME = "pause", "resume"

ANSWER_WITHIN_S = 4.0
"""The limit for the fetcher, which may be in a poll. Below a connection's limit."""


class PauseAnswer:
    """Answers on the control thread. The main thread gives it the actors once they run."""

    def __init__(self, config: Config, pauses: Pauses) -> None:
        self._config = config
        self._pauses = pauses
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
        """Record it, then have the fetcher read nothing more: what a restart between the two would
        do. Raises ControlError."""
        name, reason = self._pipeline(request), request.get("reason") or ""
        if name not in self._pauses.now():
            self._put(name, Pause(time.time_ns() // 1_000_000, str(reason)))
            self._log.warning("pipeline_paused", pipeline=name, reason=reason)
        self._have(name, paused=True)
        return f"pipeline {name} is paused: it reads nothing more, what it has read is written"

    def resume(self, request: Mapping[str, Any]) -> str:
        """The other way round. Raises ControlError."""
        name = self._pipeline(request)
        if name not in self._pauses.now():
            return f"pipeline {name} is not paused"
        self._put(name, None)
        self._log.warning("pipeline_resumed", pipeline=name)
        self._have(name, paused=False)
        return f"pipeline {name} reads on"

    def _pipeline(self, request: Mapping[str, Any]) -> str:
        name = request.get("pipeline")
        if not isinstance(name, str) or name not in self._config.pipeline:
            known = ", ".join(sorted(self._config.pipeline))
            raise ControlError(f"pipeline {name!r}: unknown; there are: {known}")
        return name

    def _put(self, name: str, pause: Pause | None) -> None:
        try:
            self._pauses.put(name, pause)
        except OSError as error:
            raise ControlError(f"it can't be recorded, and nothing was changed: {error}") from error

    def _have(self, name: str, *, paused: bool) -> None:
        """A fetcher that is just being replaced: the next one reads the record, or is asked."""
        fetcher, directory = Address(name, "fetcher"), self._directory
        if directory is None or not directory.has(fetcher):
            return  # it is about to start, and reads the record
        deadline = time.monotonic() + ANSWER_WITHIN_S
        while (left := deadline - time.monotonic()) > 0:
            future = directory.question(fetcher, PauseReading(paused))
            try:
                future.get(timeout=left)
                return
            except pykka.Timeout:
                break
            except pykka.ActorDeadError:
                if directory.ref(fetcher).is_alive():
                    continue
                return  # it has ended; if it runs again, it reads the record
        raise ControlError(
            f"pipeline {name}: recorded, but its fetcher has not answered within "
            f"{ANSWER_WITHIN_S:g} s; ask again"
        )
