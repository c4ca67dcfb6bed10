"""What commands ask of the running daemon: have a job recorded, follow it to its end."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from daemon.config.config import Config
from daemon.operations.engine.effects import Request, Save
from daemon.operations.engine.port import Look
from daemon.operations.engine.record import Job, Wanted
from daemon.operations.engine.rule import JobsLogic
from daemon.operations.engine.store import JobStore
from daemon.operations.registry import kinds_of, limits_of
from daemon.operations.runner import now
from daemon.state import control
from daemon.state.edits import recorded_of
from daemon.state.offset_file import StateDirBusy, lock_state_dir
from daemon.state.offset_stores import make_stores
from offsets.snapshot import Snapshot
from settings.exit import Exit
from sources.base.port import Source
from sources.opening import open_source

LOOK_EVERY_S = 0.5

FINAL = ("cancelled", "failed", "done")


def added(settings: Config, wanted: Wanted) -> str:
    """Have a job recorded; its id. Raises ControlError, of it NotRunning."""
    request = {
        "ask": "jobs-add",
        "kind": wanted.kind,
        "pipeline": wanted.pipeline,
        "targets": list(wanted.targets),
        "params": dict(wanted.params),
    }
    return str(control.ask(settings.daemon.state_dir, request)["job"])


def followed(settings: Config, job: str, tell: Callable[[str], None]) -> dict[str, Any]:
    """Wait for a job's end; the job. ``tell`` gets each line that is new.

    Leaving the command leaves the job as it is. Raises ControlError.
    """
    said = ""
    while True:
        request = {"ask": "jobs-show", "job": job}
        found: dict[str, Any] | None = control.ask(settings.daemon.state_dir, request)
        if found is None:
            raise control.ControlError(f"job {job} is not listed any more: raise jobs.keep")
        line = f"{job}: {found['state']}, {found['progress']['done']:,} rows: {found['message']}"
        if line != said:
            said = line
            tell(line)
        if found["state"] in FINAL:
            return found
        time.sleep(LOOK_EVERY_S)


def failed(settings: Config, reason: str, status: Exit) -> int:
    """Say why on standard error, without secrets. Returns the exit status."""
    print(f"binlogd: {settings.redactor.text(reason)}", file=sys.stderr)
    return status.value


# Jobs while no daemon runs: looked at in their files, changed under the state directory's lock.


class NotRecorded(Exception):
    """Nothing was recorded: one line."""


@contextmanager
def _held(state_dir: Path) -> Iterator[JobStore]:
    """The files, under the lock. Raises NotRecorded."""
    try:
        with lock_state_dir(state_dir):
            yield JobStore(state_dir)
    except StateDirBusy as error:
        raise NotRecorded(str(error)) from error
    except OSError as error:
        raise NotRecorded(f"the jobs' files can't be used: {error}") from error


def record(state_dir: Path, job: Job) -> None:
    """Record a job for the next start. Raises NotRecorded."""
    with _held(state_dir) as store:
        store.save(job)


def ask(state_dir: Path, id_: str, request: Request) -> str | None:
    """Pause, resume or cancel a job; why it is refused, or None. The next start follows.

    Raises NotRecorded.
    """
    with _held(state_dir) as store:
        logic = JobsLogic(limits_of(kinds_of()), store.load().jobs, keep=1000)
        refusal, effects = logic.ask(id_, request, now())
        for effect in effects:
            if isinstance(effect, Save):
                store.save(effect.job)
        return refusal


class OfflineLook(Look):
    """See ``Look``: for a command's process, whether a daemon runs or not."""

    def __init__(self, config: Config) -> None:
        self._config = config

    @property
    def config(self) -> Config:
        """See ``Look``."""
        return self._config

    def snapshot(self, pipeline: str) -> Snapshot:
        """See ``Look``."""
        store = make_stores(self._config, pipeline)
        store.start()
        try:
            return recorded_of(self._config, pipeline, store.get())
        finally:
            store.stop()

    def source(self, pipeline: str) -> Source:
        """See ``Look``."""
        return open_source(self._config, pipeline)
