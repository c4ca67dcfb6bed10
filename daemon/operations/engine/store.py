"""The jobs' files: one durable file for each, ``state_dir/jobs/ID.json``, its owner's alone."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from actors.runtime.files import make_private_folder, write_durably
from daemon.operations.engine.record import DamagedJob, Job, decode, encode

FOLDER = "jobs"


class Found(NamedTuple):
    """The jobs, oldest first, and a line for each file that can't be read."""

    jobs: tuple[Job, ...]
    damage: tuple[str, ...]


class JobStore:
    """The files of one state directory. The writer holds that directory's lock.

    One thread's, except ``load``.
    """

    def __init__(self, state_dir: Path) -> None:
        self.folder = state_dir / FOLDER

    def load(self) -> Found:
        """All jobs on the disk. What is damaged is reported, never changed. Raises OSError."""
        jobs: list[Job] = []
        damage: list[str] = []
        for path in sorted(self.folder.glob("*.json")):
            try:
                job = decode(path.read_text(encoding="utf-8"))
                if job.id != path.stem:
                    raise DamagedJob(f"it is the job {job.id}")
                jobs.append(job)
            except FileNotFoundError:
                continue  # a running daemon removed it meanwhile
            except (DamagedJob, UnicodeDecodeError, OSError) as error:
                damage.append(f"{path}: {error}")
        return Found(tuple(sorted(jobs, key=lambda job: (job.created_ms, job.id))), tuple(damage))

    def save(self, job: Job) -> None:
        """Make a job durable. Raises OSError, and then the old file is whole."""
        make_private_folder(self.folder)
        write_durably(self._path(job.id), encode(job))

    def has(self, id_: str) -> bool:
        """Whether a job has a file, readable or not."""
        return self._path(id_).exists()

    def remove(self, id_: str) -> None:
        """Forget a job that has ended. Raises OSError."""
        self._path(id_).unlink(missing_ok=True)

    def _path(self, id_: str) -> Path:
        return self.folder / f"{id_}.json"
