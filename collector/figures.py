"""How a collector is, as the status document shows it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypedDict

State = Literal[
    "waiting",
    "source away",
    "unfit",
    "starting",
    "running",
    "paused",
    "failed",
    "lost",
    "away",
    "removed",
    "left",
]
"""waiting: for its worker. unfit: what it needs is not so, and somebody has to see to it. failed:
its task has, and is tried again. lost: its position is gone at the source, and it is stopped. away:
Connect does not answer. left: it has no section any more, and was not removed."""


class CollectorFigures(TypedDict):
    """``reason``: why it is not running. ``position``: as Debezium has it. ``beyond_*``: what the
    source keeps behind it; ``purge_seconds``, ``room_bytes``: until the source may remove it, by
    age and by size. ``edited``: the options that somebody had set by hand, put right since
    ``edited_seconds``. ``tables``: patterns of what it reads; with a lost position they need a
    load."""

    collector: str
    pipelines: list[str]
    connect: str
    state: State
    seconds: float
    reason: str
    restarts: int
    restart_in_seconds: float | None
    position: dict[str, str]
    beyond_bytes: int | None
    beyond_seconds: float | None
    purge_seconds: float | None
    room_bytes: int | None
    edited: list[str]
    edited_seconds: float | None
    tables: list[str]
    on_lost_position: str


def left_figures(name: str, seconds: float) -> CollectorFigures:
    """Of one without a section."""
    return {
        "collector": name, "pipelines": [], "connect": "", "state": "left", "seconds": seconds,
        "reason": "", "restarts": 0, "restart_in_seconds": None, "position": {},
        "beyond_bytes": None, "beyond_seconds": None, "purge_seconds": None, "room_bytes": None,
        "edited": [], "edited_seconds": None, "tables": [], "on_lost_position": "stop",
    }  # fmt: skip


def reads_log(position: Mapping[str, object] | None) -> bool:
    """Whether it is a position in the source's log. While Debezium looks at the tables' definitions
    it says so by words of its own: a reader that is replaced then begins at another position."""
    return bool(position) and not any("snapshot" in word for word in position or ())


def begins(state: State, position: Mapping[str, object] | None) -> bool:
    """Whether it is on its way up, and does not read the source's log yet."""
    if state == "running":
        return not reads_log(position)
    return state in ("waiting", "starting")
