"""A file of lines, each durable by itself and with its own checksum.

A line is a JSON object whose last member is ``crc32``, the checksum of the bytes before it. A line
without a newline at its end was cut short by a crash and never confirmed: readers skip it and the
next append overwrites it.
"""

from __future__ import annotations

import fcntl
import json
import os
import zlib
from collections.abc import Iterator, Mapping, Set
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from actors.runtime.files import make_private_file, sync
from sources.base.letter import LetterId, NotALetter, from_document

_CRC = b', "crc32": '


class Line(NamedTuple):
    """A line with its number, from 1. ``members`` None: it is damaged."""

    number: int
    members: Mapping[str, Any] | None


def line_of(members: Mapping[str, Any]) -> bytes:
    """Make a line of a JSON object that is not empty."""
    text = json.dumps(members).encode()[:-1]
    return b"%s%s%d}\n" % (text, _CRC, zlib.crc32(text))


def append_line(path: Path, line: bytes) -> int:
    """Append a line durably, and return the file's size. A failed append leaves nothing that
    counts.

    Each append starts behind the last whole line and overwrites what an earlier one left
    unconfirmed. Two processes may append. Raises OSError.
    """
    is_new = not path.exists()
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)  # it holds rows of the source
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        os.fchmod(handle, 0o600)
        end = _whole_lines(handle)
        os.ftruncate(handle, end)
        try:
            _write(handle, line, end)
            os.fsync(handle)
        except OSError:
            os.ftruncate(handle, end)  # complete or not, it was never confirmed
            raise
    finally:
        os.close(handle)
    if is_new:
        sync(path.parent)
    return end + len(line)


def read_lines(file: BinaryIO) -> Iterator[Line]:
    """Yield all whole lines of an open file. Raises OSError."""
    for number, line in enumerate(file, 1):
        if line.endswith(b"\n"):
            yield Line(number, members_of(line))


def _write(handle: int, line: bytes, at: int) -> None:
    rest = memoryview(line)
    while rest:
        written = os.pwrite(handle, rest, at)
        rest, at = rest[written:], at + written


def members_of(line: bytes) -> Mapping[str, Any] | None:
    """The JSON object of a whole line, None where it is damaged."""
    text, found, crc = line.rpartition(_CRC)
    if not found or crc != b"%d}\n" % zlib.crc32(text):
        return None
    try:
        members = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return members if isinstance(members, dict) else None


def _whole_lines(handle: int) -> int:
    """The size of a file up to its last newline."""
    end = os.fstat(handle).st_size
    while end:
        begin = max(0, end - 65536)
        cut = os.pread(handle, end - begin, begin).rfind(b"\n")
        if cut >= 0:
            return begin + cut + 1
        end = begin
    return 0


# Removes dead letters that are done with: those that were replayed, after a while.


def is_done(line: Line, replayed: Set[LetterId], before_s: float) -> bool:
    """Whether a line is a letter that was replayed, and older. A damaged line never is."""
    try:
        letter = None if line.members is None else from_document(line.members)
    except NotALetter:
        return False
    return letter is not None and letter.id in replayed and letter.when.timestamp() < before_s


def has_done(path: Path, replayed: Set[LetterId], before_s: float) -> bool:
    """Whether a file has a letter that is done with. Raises OSError."""
    with path.open("rb") as file:
        return any(is_done(line, replayed, before_s) for line in read_lines(file))


def remove_done(path: Path, replayed: Set[LetterId], before_s: float) -> int:
    """Remove them from a file to which nobody appends, the file itself where no other is left.

    A reader that has it open reads on in what it was. Gives how many went. Raises OSError.
    """
    kept = path.with_suffix(".kept")
    make_private_file(kept)
    left = gone = 0
    with path.open("rb") as file, kept.open("r+b") as out:
        for raw in file:
            if is_done(Line(0, members_of(raw)), replayed, before_s):
                gone += 1
            else:
                left += 1
                out.write(raw)
        out.flush()
        os.fsync(out.fileno())
    if gone and left:
        os.replace(kept, path)
    else:
        kept.unlink()
        if gone:
            path.unlink()
    sync(path.parent)
    return gone
