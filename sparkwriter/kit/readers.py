"""How people read a sink's tables with their own tools. Pure."""

from __future__ import annotations

import re
import shlex
from typing import NamedTuple

from changes.model.model import TargetName
from changes.sql.quoted import quoted

_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")


class HowToRead(NamedTuple):
    """A tool, and the text to paste. Secrets are named, not shown."""

    tool: str
    text: str


def spelt(*names: str, mark: str = '"') -> str:
    """Names with dots between them, each quoted where it needs to be."""
    return ".".join(name if _PLAIN.fullmatch(name) else quoted(name, mark) for name in names)


def by_query(target: TargetName) -> HowToRead:
    """Our own command."""
    return HowToRead("binlogd", shlex.join(["binlogd", "query", f"SELECT * FROM {target}"]))
