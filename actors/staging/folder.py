"""The staging folder: closed batches as Parquet files for Spark.

Nothing here needs to survive a crash: after a restart the files are removed and their changes are
read again from Kafka. So nothing is fsynced. The JVM's temporary files are here too.

Several daemons may share one staging folder. Each run has a folder in it with a locked file. The
lock ends with the process, however it ends, and so shows the next run whose files nobody needs.
"""

from __future__ import annotations

import errno
import fcntl
import itertools
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from actors.runtime.files import FILE_MODE, make_private_folder, private_opener

OWNER_FILE = "owner"
"""The file in a run's folder that the run keeps locked as long as it lives. Holds its process
id."""

RUN_NAME = re.compile(r"run-[0-9a-f]{12}(-jvm)?")
"""The pattern of runs' folder names. A folder with another name belongs to somebody else."""

_NOT_OURS = frozenset(
    {
        errno.EWOULDBLOCK,  # its owner lives
        errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EISDIR,  # no folder, no owner's file
        errno.EACCES, errno.EPERM,
    }
)  # fmt: skip
"""The system's errors for a folder that is not a dead run's of this user."""


class RunFolder:
    """A folder of this process for as long as it lives. ``run_id`` must match RUN_NAME, or a later
    run does not remove the folder."""

    def __init__(self, folder: Path, run_id: str) -> None:
        """Create it. Raises OSError."""
        self.path = folder / run_id
        self._owner = _claim(self.path)

    def close(self) -> None:
        """Remove the folder with its content, when nobody uses it any more."""
        remove_tree(self.path)
        self._owner.close()


class StagingFolder(RunFolder):
    """One run's staged files. Any thread; closed when the actors have ended."""

    def __init__(self, folder: Path, run_id: str) -> None:
        super().__init__(folder, run_id)
        # next() on a count is atomic under the GIL and in free-threaded Python alike.
        self._numbers = itertools.count(1)

    def new_path(self) -> str:
        """The name of a new file."""
        return str(self.path / f"{next(self._numbers)}.parquet")

    def remove(self, paths: tuple[str, ...]) -> None:
        """Remove staged files that are written or given up."""
        for path in paths:
            Path(path).unlink(missing_ok=True)


def remove_tree(folder: Path) -> bool:
    """Remove a run's folder, the owner's file last: until then the folder stays claimed.

    False if another process removes it too, has recreated it at the last moment, or an ending JVM
    still writes into it. Links are removed, never followed.
    """
    try:
        with _opened(folder) as handle:
            return _remove(folder, handle)
    except FileNotFoundError:
        return False


def clean_staging(folder: Path) -> int:
    """Remove dead runs' folders, and return how many there were.

    Called at the start. Skips a folder whose owner lives, and everything that is not certainly a
    run's of this user: another name, a link, no owner's file, another user's.
    """
    make_private_folder(folder)
    runs = [run for run in folder.iterdir() if RUN_NAME.fullmatch(run.name)]
    return sum(map(_remove_if_dead, runs))


def _claim(folder: Path) -> IO[str]:
    """Create the folder and lock its owner's file, which stays open. Raises OSError."""
    make_private_folder(folder.parent)
    while True:
        make_private_folder(folder)
        try:
            file = open(folder / OWNER_FILE, "a+", encoding="utf-8", opener=private_opener)  # noqa: SIM115
        except FileNotFoundError:
            continue  # a starting daemon saw a folder without owner and has just removed it
        fcntl.flock(file, fcntl.LOCK_EX)
        if _is_at(file.fileno(), folder / OWNER_FILE):
            file.write(f"{os.getpid()}\n")
            file.flush()
            return file
        file.close()


def _remove_if_dead(folder: Path) -> bool:
    """Remove a run's folder unless its owner lives or it belongs to another user."""
    try:
        with _opened(folder) as handle, _owner_of(handle) as owner:
            if os.fstat(handle).st_uid != os.geteuid() or os.fstat(owner).st_uid != os.geteuid():
                return False
            fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Otherwise the lock is of a removed folder, and this is a new one of that name.
            return _is_at(owner, folder / OWNER_FILE) and _remove(folder, handle)
    except OSError as error:
        # A held lock, a link, a folder in the file's place, or no owner's file.
        if error.errno in _NOT_OURS:
            return False
        raise


@contextmanager
def _opened(folder: Path) -> Iterator[int]:
    """Open the folder itself, never a link's target."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        yield handle
    finally:
        os.close(handle)


@contextmanager
def _owner_of(folder: int) -> Iterator[int]:
    """Open the owner's file of an open folder; never creates it. A pipe of that name does not
    block."""
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK
    handle = os.open(OWNER_FILE, flags, FILE_MODE, dir_fd=folder)
    try:
        yield handle
    finally:
        os.close(handle)


def _remove(path: Path, folder: int) -> bool:
    """Remove an open folder with its content. See ``remove_tree``."""
    try:
        _empty(folder)
        path.rmdir()
    except OSError as error:
        if error.errno in {errno.ENOTEMPTY, errno.ENOENT}:
            return False
        raise
    return True


def _empty(folder: int) -> None:
    """Remove the content, the owner's file last."""
    with os.scandir(folder) as found:
        entries = sorted(found, key=lambda entry: entry.name == OWNER_FILE)
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.name, dir_fd=folder)
            continue
        try:
            os.unlink(entry.name, dir_fd=folder)
        except FileNotFoundError:
            continue  # another removes it too


def _is_at(file: int, path: Path) -> bool:
    """Whether the open file is still the one of that name."""
    try:
        return os.path.samestat(
            os.fstat(file if isinstance(file, int) else file.fileno()),
            path.stat(follow_symlinks=False),
        )
    except FileNotFoundError:
        return False
