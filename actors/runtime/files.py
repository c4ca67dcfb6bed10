"""Files and folders that only this user can read: rows of the source are in them.

Whatever the process's umask is. Tables are made by the umask instead: other engines read those.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

FOLDER_MODE = 0o700
FILE_MODE = 0o600


def private_opener(path: str, flags: int) -> int:
    """For ``open(…, opener=private_opener)``: a file that this makes is its owner's alone.

    One that root makes in the folder of another user is that user's: a command that somebody gives
    as root would shut the daemon out of its own files.
    """
    if not flags & os.O_CREAT or os.geteuid() != 0:
        return os.open(path, flags, FILE_MODE)
    try:
        # One that is there stays whose it is, and no link of the folder's owner leads elsewhere.
        handle = os.open(path, flags | os.O_EXCL, FILE_MODE)
    except FileExistsError:
        return os.open(path, flags, FILE_MODE)
    owner = os.stat(os.path.dirname(path) or ".")
    if owner.st_uid != 0:
        with suppress(OSError):  # no such right, in a container or on a network's file system
            os.fchown(handle, owner.st_uid, owner.st_gid)
    return handle


def make_private_file(path: Path) -> None:
    """Make an empty file, for somebody who opens it by its name: it keeps its mode.

    Raises OSError.
    """
    os.close(private_opener(str(path), os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC))


def make_private_folder(folder: Path) -> None:
    """Make a folder for this user alone, unless it exists. Missing parents follow the umask. One
    that root makes in the folder of another user is that user's, as files are.

    Raises OSError.
    """
    is_new = not folder.exists()
    folder.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
    owner = folder.parent.stat()
    if is_new and os.geteuid() == 0 and owner.st_uid != 0:
        with suppress(OSError):  # as of files
            os.chown(folder, owner.st_uid, owner.st_gid, follow_symlinks=False)


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


# The state directory's id. It names the branches of its daemon's writes.

_ID = re.compile(r"[0-9a-f]{12}")


def state_id(state_dir: Path) -> str:
    """The id: 12 hexadecimal digits, created at the first start and kept.

    Called under the directory's lock. A damaged file is replaced. What the last run left in the
    targets then counts as another machine's and is removed when it is old enough. Raises OSError.
    """
    path = state_dir / "id"
    if (known := known_id(state_dir)) is not None:
        return known
    new_id = uuid4().hex[:12]
    write_durably(path, f"{new_id}\n")
    return new_id


def known_id(state_dir: Path) -> str | None:
    """The id, None if there is none. For readers: creates nothing. Raises OSError."""
    try:
        text = (state_dir / "id").read_text(encoding="ascii").strip()
    except (FileNotFoundError, UnicodeDecodeError):
        return None
    return text if _ID.fullmatch(text) else None


def write_durably(
    path: Path, text: str, before: Callable[[], None] = lambda: None, shared: bool = False
) -> None:
    """Replace a file's text: a crash leaves the old one or the new one, whole. Raises OSError that
    names the file.

    ``before`` is called when the new text is on the disk, beside the old file. ``shared``: who may
    read it is the umask's matter.
    """
    temporary = path.with_name(f"{path.name}.new")
    with _named(path):
        with open(temporary, "wb", opener=None if shared else private_opener) as file:
            file.write(text.encode())  # in one piece: a text file would write it in small ones
            file.flush()
            os.fsync(file.fileno())
        before()
        os.replace(temporary, path)
        sync(path.parent)


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """An error of a write or an fsync knows the file's number alone."""
    try:
        yield
    except OSError as error:
        if error.errno is None or error.filename is not None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error


def sync(path: Path) -> None:
    """Have a file's content, or the names in a folder, outlast a crash. Raises OSError."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
