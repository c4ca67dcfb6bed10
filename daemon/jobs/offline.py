"""Jobs while no daemon runs: looked at in their files, changed under the state directory's lock."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from daemon.config.config import Config
from daemon.jobs.effects import Request, Save
from daemon.jobs.kinds import kinds_of, limits_of
from daemon.jobs.port import Look
from daemon.jobs.record import Job
from daemon.jobs.rule import JobsLogic
from daemon.jobs.runner import now
from daemon.jobs.store import JobStore
from daemon.positions.chain import make_stores
from daemon.positions.offset_file import StateDirBusy, lock_state_dir
from daemon.runtime.edits import recorded_of
from daemon.source.opening import open_source
from daemon.source.port import Source
from offsets.snapshot import Snapshot


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
