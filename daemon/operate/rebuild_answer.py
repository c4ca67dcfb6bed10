"""``tables rebuild`` on the running daemon: checked here, carried out by the main thread."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from dataclasses import replace
from typing import Any
from uuid import uuid4

import structlog

from daemon.config.config import Config
from daemon.observe.control import ControlError
from daemon.operate.rebuild_plan import RebuildRequest, pipeline_of
from daemon.runtime.edits import Change, EditFailed, EditRefused
from offsets.store import OffsetStore, StoreError

ANSWER_WITHIN_S = 3.0
"""A connection may take 5 s. A pipeline with long running writes stops later than that."""


class RebuildAnswer:
    """Answers on the control thread. ``stores`` are the running daemon's, by pipeline."""

    def __init__(
        self,
        config: Config,
        stores: Callable[[], Mapping[str, OffsetStore]],
        edit: Callable[[str, Change], Future[None]],
    ) -> None:
        self._config = config
        self._stores = stores
        self._edit = edit

    def __call__(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """``begun``: whether it has started. ``line``: what was started, or why not. Raises
        ControlError."""
        target = request.get("target")
        if not isinstance(target, str):
            raise ControlError('"target" is wanted')
        try:
            wanted = self._request(target, request)
        except EditRefused as error:
            return {"begun": False, "line": str(error)}
        except StoreError as error:
            raise ControlError(str(error)) from error
        done = self._edit(wanted.pipeline, wanted)
        line = said(target, wanted.cancel)
        return awaited(done, target, wanted.pipeline, line, "rebuild_not_begun")

    def _request(self, target: str, request: Mapping[str, Any]) -> RebuildRequest:
        """The request, refused at once if the present snapshot refuses it."""
        loaded = (store.get().snapshot for store in self._stores().values())
        snapshot = pipeline_of((found for found in loaded if found is not None), target)
        flags = {name: request.get(name) is True for name in ("force", "keep_old", "cancel")}
        number = uuid4().hex[:8]
        wanted = RebuildRequest(self._config, snapshot.pipeline, target, number, **flags)
        replace(wanted, own=1)(snapshot)
        return wanted


def awaited(
    done: Future[None], target: str, pipeline: str, line: str, event: str
) -> dict[str, Any]:
    """Answer with ``line`` once it is done, or that it is running. In that case a later failure is
    logged as ``event``. Raises ControlError."""
    try:
        done.result(ANSWER_WITHIN_S)
    except EditRefused as error:
        return {"begun": False, "line": str(error)}
    except (EditFailed, StoreError) as error:
        raise ControlError(str(error)) from error
    except NotYet:
        done.add_done_callback(_log_failure_of(target, event))
        stops = f"{target}: pipeline {pipeline} is being stopped for it; see the log"
        return {"begun": True, "line": stops}
    return {"begun": True, "line": line}


def said(target: str, cancel: bool) -> str:
    """One line about what was started."""
    if cancel:
        return f"{target}: the rebuild is given up; what came meanwhile is read again"
    return f"{target}: is read again into a new table, which takes its name when it has caught up"


def _log_failure_of(target: str, event: str) -> Callable[[Future[None]], None]:
    def log_failure(done: Future[None]) -> None:
        error = done.exception()
        if error is not None:
            log: Any = structlog.get_logger().bind(actor="supervisor")
            log.error(event, target=target, reason=str(error))

    return log_failure
