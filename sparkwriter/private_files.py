"""Files and folders that only this user can read: rows of the source are in them.

Whatever the process's umask is. Tables are made by the umask instead: other engines read those.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

FOLDER_MODE = 0o700
FILE_MODE = 0o600


def private_opener(path: str, flags: int) -> int:
    """For ``open(…, opener=private_opener)``: a file that this makes is its owner's alone."""
    return os.open(path, flags, FILE_MODE)


def make_private_file(path: Path) -> None:
    """Make an empty file, for somebody who opens it by its name: it keeps its mode.

    Raises OSError.
    """
    os.close(private_opener(str(path), os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC))


def make_private_folder(folder: Path) -> None:
    """Make a folder for this user alone, unless it exists. Missing parents follow the umask.

    Raises OSError.
    """
    folder.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)


def close_folder(folder: Path) -> None:
    """Make the folder, or close an existing one to others, as an earlier version left it open.

    One that belongs to somebody else, or that all share (sticky, as /tmp), stays as it is.
    Raises OSError.
    """
    make_private_folder(folder)
    found = folder.stat()
    open_to_others = found.st_mode & 0o077 and not found.st_mode & stat.S_ISVTX
    if open_to_others and found.st_uid == os.geteuid():
        folder.chmod(FOLDER_MODE)
