"""What a source keeps of its log beyond the position of a collector. Values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Ask = Callable[[str], list[tuple[object, ...]]]
"""A question to the database. Raises DatabaseAway, DatabaseRefused."""

Offset = Mapping[str, Any]
"""A position as Debezium has it, of whatever connector."""


@dataclass(frozen=True, slots=True)
class KeptLog:
    """``bytes``: from the position to the log's end; ``seconds``: the age of what is read next,
    by the source's own clock, so below 0 where that was set back.
    ``purge_s``: until the source may remove the position by age, ``room_bytes``: by size, both None
    where it does not tell or nothing is to be removed. ``lost``: why the position is gone, else
    empty. ``end``: the log's end, in the database's words. ``identity``: which server it was.
    ``taken``: who reads by the collector's slot. ``by_file``: a MySQL's position is by file,
    without GTIDs. ``unread``: why changes are in the log that are not read, else empty.
    ``xa_rollbacks``: how many XA transactions were rolled back since the server's start.
    """

    bytes: int | None = None
    seconds: float | None = None
    purge_s: float | None = None
    room_bytes: int | None = None
    lost: str = ""
    end: str = ""
    identity: str = ""
    taken: str = ""
    by_file: bool = False
    unread: str = ""
    xa_rollbacks: int | None = None


def whole(value: object) -> int | None:
    """A number of the database's answer, or of an offset; None where there is none."""
    try:
        return None if value is None else int(str(value))
    except ValueError:
        return None


def literal(text: str) -> str:
    """A text in a statement of MySQL's or MariaDB's."""
    return "'" + text.replace("\\", "\\\\").replace("'", "''").replace("%", "%%") + "'"
