"""Unix sockets of our own: a file that is the owner's alone, at a path of any length."""

from __future__ import annotations

import errno
import os
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def claim(listener: socket.socket, path: Path) -> None:
    """Bind to a path. A socket of a dead process is replaced. Raises OSError."""
    if path.exists() and not stat.S_ISSOCK(path.lstat().st_mode):
        raise OSError(errno.EEXIST, "is in the way and not a socket", str(path))
    path.unlink(missing_ok=True)
    # Before bind: the file is created with this mode, so nobody else can ever connect.
    os.fchmod(listener.fileno(), 0o600)
    with short_path(path) as place:
        listener.bind(place)


@contextmanager
def short_path(path: Path) -> Iterator[str]:
    """The path as a socket address: 107 bytes at most, and a state directory may be longer."""
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)
