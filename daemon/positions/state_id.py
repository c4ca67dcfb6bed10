"""The state directory's id. It names the branches of its daemon's writes."""

from __future__ import annotations

import os
import re
from pathlib import Path
from uuid import uuid4

from sparkwriter.private_files import private_opener

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
    temporary = state_dir / "id.new"
    with open(temporary, "w", encoding="ascii", opener=private_opener) as file:
        file.write(f"{new_id}\n")
    os.replace(temporary, path)
    return new_id


def known_id(state_dir: Path) -> str | None:
    """The id, None if there is none. For readers: creates nothing. Raises OSError."""
    try:
        text = (state_dir / "id").read_text(encoding="ascii").strip()
    except (FileNotFoundError, UnicodeDecodeError):
        return None
    return text if _ID.fullmatch(text) else None
