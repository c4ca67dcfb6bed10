"""Removes dead letters that are done with: those that were replayed, after a while.

They hold raw values of the source, masked columns included. A letter that nobody replayed stays:
it may be the only copy.
"""

from __future__ import annotations

import os
from collections.abc import Set
from pathlib import Path

from daemon.letters.letter import LetterId, NotALetter, from_document
from daemon.letters.lines import Line, members_of, read_lines, sync_folder
from sparkwriter.private_files import make_private_file


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

    Whoever has it open reads on in what it was. Gives how many went. Raises OSError.
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
    sync_folder(path.parent)
    return gone
