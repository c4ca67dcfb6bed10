"""``tables rebuild`` on the running daemon: checked here, carried out by a job."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from dataclasses import replace
from typing import Any
from uuid import uuid4

import structlog

from daemon.config.config import Config
from daemon.operations.engine.record import Job, State, Wanted
from daemon.operations.rebuild.kind import FLAGS, KIND, job_of, refuse_live_load
from daemon.operations.rebuild.plan import RebuildRequest, pipeline_of
from daemon.operations.runner import JobRunner, JobsClosed
from daemon.state.control import ControlError
from daemon.state.edits import Change, EditFailed, EditRefused
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
        runner: JobRunner,
    ) -> None:
        self._config = config
        self._stores = stores
        self._edit = edit
        self._runner = runner

    def __call__(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """``begun``: whether it has started. ``line``: what was started, or why not. Raises
        ControlError."""
        target = request.get("target")
        if not isinstance(target, str):
            raise ControlError('"target" is wanted')
        try:
            wanted = self._request(target, request)
            job = job_of(self._runner.jobs, target)
            if not wanted.cancel:
                return self._begin(wanted, job)
            if job is None:
                # Of before the jobs: nobody but the snapshot knows of it.
                done = self._edit(wanted.pipeline, wanted)
                return awaited(
                    done, target, wanted.pipeline, said(target, True), "rebuild_not_begun"
                )
            return self._cancel(job, target)
        except EditRefused as error:
            return {"begun": False, "line": str(error)}
        except (StoreError, JobsClosed, OSError) as error:
            raise ControlError(str(error)) from error
        except NotYet as error:
            raise ControlError(f"the jobs did not answer within {ANSWER_WITHIN_S:g} s") from error

    def _begin(self, wanted: RebuildRequest, other: Job | None) -> dict[str, Any]:
        if other is not None:
            raise EditRefused(f"{wanted.target} is being rebuilt already, by the job {other.id}")
        flags = {name: getattr(wanted, name) for name in FLAGS}
        asked = Wanted(KIND, wanted.pipeline, (wanted.target,), flags)
        job = self._runner.add(asked, f"{KIND}-{wanted.number}").result(ANSWER_WITHIN_S)
        return self._followed(job, wanted.target, lambda now: "begun" in now.memory)

    def _cancel(self, job: Job, target: str) -> dict[str, Any]:
        refusal = self._runner.ask(job.id, "cancel").result(ANSWER_WITHIN_S)
        if refusal is not None:
            raise EditRefused(refusal)
        return self._followed(job, target, lambda now: False)

    def _followed(self, job: Job, target: str, is_begun: Callable[[Job], bool]) -> dict[str, Any]:
        def until(now: Job) -> bool:
            return now.state.is_final or is_begun(now)

        now = self._runner.watch(job.id, until, ANSWER_WITHIN_S)
        if now is None or now.state is State.FAILED:
            raise EditRefused(job.message if now is None else now.message)
        if not until(now):
            stops = f"{target}: pipeline {job.wanted.pipeline} is being stopped for it"
            return {"begun": True, "line": f"{stops}; `binlogd jobs show {job.id}`"}
        line = said(target, now.state is State.CANCELLED)
        return {"begun": True, "line": f"{line} (job {job.id})"}

    def _request(self, target: str, request: Mapping[str, Any]) -> RebuildRequest:
        """The request, refused at once if the present snapshot refuses it."""
        loaded = (store.get().snapshot for store in self._stores().values())
        snapshot = pipeline_of((found for found in loaded if found is not None), target)
        flags = {name: request.get(name) is True for name in ("force", "keep_old", "cancel")}
        number = uuid4().hex[:8]
        wanted = RebuildRequest(self._config, snapshot.pipeline, target, number, **flags)
        replace(wanted, own=1)(snapshot)
        refuse_live_load(snapshot, target, self._runner.jobs)
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
