"""The staging folder: closed batches as Parquet files, which is what Spark reads.

Nothing here needs to survive a crash: after a restart the files are removed and their changes are
read again from Kafka. So nothing is fsynced. The JVM's temporary files are here too.

Several daemons may stage in one folder. Each run has a folder in it with a locked file; the lock
ends with the process, however it ends, and tells the next run whose files nobody needs.
"""

from __future__ import annotations

import errno
import fcntl
import itertools
import os
import shutil
from pathlib import Path
from typing import IO

OWNER_FILE = "owner"
"""Locked by the run that the folder belongs to, as long as it lives; says its process id."""


class RunFolder:
    """A folder that is this process's for as long as it lives. ``run_id`` begins with ``run-``."""

    def __init__(self, folder: Path, run_id: str) -> None:
        """Make it. Raises OSError."""
        self.path = folder / run_id
        self._owner = _claim(self.path)

    def close(self) -> None:
        """Remove the folder and whatever is left in it, when nobody uses it any more."""
        remove_tree(self.path)
        self._owner.close()


class StagingFolder(RunFolder):
    """One run's staged files. Called from any thread; closed when the actors have ended."""

    def __init__(self, folder: Path, run_id: str) -> None:
        super().__init__(folder, run_id)
        # next() on a count is atomic under the GIL and in free-threaded Python alike.
        self._numbers = itertools.count(1)

    def new_path(self) -> str:
        """A file that nobody has written yet."""
        return str(self.path / f"{next(self._numbers)}.parquet")

    def remove(self, paths: tuple[str, ...]) -> None:
        """Remove staged files that are written or given up."""
        for path in paths:
            Path(path).unlink(missing_ok=True)


def remove_tree(folder: Path) -> bool:
    """Remove a run's folder, the owner's file last: until then it is not given away.

    False when somebody else removes it too, has made it again at the last moment, or a JVM that
    is about to end still writes into it.
    """
    try:
        for file in folder.iterdir():
            if file.is_dir():
                shutil.rmtree(file)
            elif file.name != OWNER_FILE:
                file.unlink(missing_ok=True)
        (folder / OWNER_FILE).unlink(missing_ok=True)
        folder.rmdir()
    except OSError as error:
        if error.errno in {errno.ENOTEMPTY, errno.ENOENT}:
            return False
        raise
    return True


def clean_staging(folder: Path) -> int:
    """Remove what dead runs left, and say how many folders that were.

    Called at the start. A folder whose owner lives is left alone.
    """
    folder.mkdir(parents=True, exist_ok=True)
    runs = [run for run in folder.iterdir() if run.is_dir() and run.name.startswith("run-")]
    return sum(map(_remove_if_dead, runs))


def _claim(folder: Path) -> IO[str]:
    """Make the folder and lock its owner's file, which stays open. Raises OSError."""
    while True:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            file = (folder / OWNER_FILE).open("a+", encoding="utf-8")
        except FileNotFoundError:
            continue  # a starting daemon saw a folder without owner and has just removed it
        fcntl.flock(file, fcntl.LOCK_EX)
        if _is_at(file, folder / OWNER_FILE):
            file.write(f"{os.getpid()}\n")
            file.flush()
            return file
        file.close()


def _remove_if_dead(folder: Path) -> bool:
    """Remove a run's folder unless its owner lives or is another user of this machine."""
    try:
        with (folder / OWNER_FILE).open("a+", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Else it is the lock of a folder that is gone, and this is a new one of that name.
            return _is_at(file, folder / OWNER_FILE) and remove_tree(folder)
    except (BlockingIOError, FileNotFoundError, PermissionError):
        return False


def _is_at(file: IO[str], path: Path) -> bool:
    """Whether the open file is still the one of that name."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False
