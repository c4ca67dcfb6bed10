"""Which process holds a state directory: told without taking its lock, which a start may want."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path


def owner(state_dir: Path) -> int | None:
    """The id of the process that has locked it; None: nobody has, or this process may not see it.

    What a dead daemon has left in the file counts only where that process has the file open.
    """
    lock = state_dir / "lock"
    with suppress(OSError, ValueError):
        process = int(lock.read_text())
        open_files = Path(f"/proc/{process}/fd")
        if any(_is(lock, file) for file in open_files.iterdir()):
            return process
    return None


def _is(lock: Path, file: Path) -> bool:
    with suppress(OSError):  # closed meanwhile
        return lock.samefile(file)
    return False
