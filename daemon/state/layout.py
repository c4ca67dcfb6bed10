"""The version of a state directory: its file ``version`` says how all files beside it are laid out.

Some of them, as the spills, have no version of their own. A newer binlogd raises the number when it
changes any of them, so that an older one touches none. A folder without the file is of version 1.
"""

from __future__ import annotations

from pathlib import Path

from actors.runtime.files import write_durably

VERSION = 1
"""Raised by a change that an older binlogd would misread, with a step that takes the old files."""

FILE = "version"


class NewerLayout(OSError):
    """A newer binlogd uses this folder. Which versions, and the ways out."""


def check_layout(state_dir: Path) -> None:
    """Refuse a folder that this binlogd would misread. Changes nothing.

    Raises NewerLayout, OSError.
    """
    path = state_dir / FILE
    try:
        text = path.read_text(encoding="ascii", errors="replace").strip()
    except FileNotFoundError:
        return
    if text != str(VERSION):
        raise NewerLayout(
            f"{path} says {text[:40]!r}, this binlogd knows {VERSION}: a newer one has used this"
            " folder. Start that one again, or put back the copy of the folder and of the targets"
            " that was made before the upgrade"
        )


def claim_layout(state_dir: Path) -> None:
    """Check, and write the version where there is none. Under the folder's lock.

    Raises NewerLayout, OSError.
    """
    check_layout(state_dir)
    path = state_dir / FILE
    if not path.exists():
        write_durably(path, f"{VERSION}\n")
