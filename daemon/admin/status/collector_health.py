"""What is not well with a collector. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from collector.figures import CollectorFigures
from daemon.admin.status.conditions import Condition, Level
from daemon.admin.status.words import duration, size
from settings.shell import quoted

PURGE_SOON_S = 24 * 3600.0
"""A position that the source may remove within a day needs somebody's eye."""

ROOM_LEFT = 1 << 30
"""Bytes of the source's log; fewer until it removes the position need somebody's eye."""

EDITED_S = 3600.0
"""How long a connector that was put right is shown."""


def of_collectors(found: Iterable[CollectorFigures], lasting_s: float) -> Iterator[Condition]:
    """What holds each up is ill after ``lasting_s``, what somebody must decide is ill at once."""
    for one in found:
        yield from _state(one, lasting_s)
        yield from _kept(one)
        if one["edited"] and (one["edited_seconds"] or 0.0) < EDITED_S:
            options = ", ".join(one["edited"])
            line = f"its connector was changed by hand, and was corrected: {options}"
            yield Condition("collector_edited", line, "passing", subject=_name(one))


def _state(one: CollectorFigures, lasting_s: float) -> Iterator[Condition]:
    word, state = quoted(one["collector"]), one["state"]
    lasting: Level = "ill" if one["seconds"] > lasting_s else "passing"
    if state == "lost":
        tables = " ".join(map(quoted, one["tables"]))
        line = (
            f"its position is gone at the source, and it is stopped: {one['reason']}; it can begin "
            f"at the source's present, and then these need a load: {tables}"
        )
        command = f"binlogd collector reset {word}"
        yield Condition("collector_lost", line, "ill", subject=_name(one), command=command)
    elif state == "left":
        line = (
            "has no section any more, and was not removed: its connector may go on, and a slot of "
            f"it keeps PostgreSQL's log; put [collector.{one['collector']}] back and remove it, "
            "then take the section away"
        )
        command = f"binlogd collector remove {word}"
        yield Condition("collector_left", line, "ill", subject=_name(one), command=command)
    elif state in ("failed", "unfit"):
        again = one["restart_in_seconds"]
        then = "" if again is None else f" (tried again in {duration(again)})"
        command = "" if again is None else f"binlogd collector restart {word}"
        line = f"does not read: {one['reason']}{then}"
        of = (_name(one), command, one["seconds"])
        yield Condition("collector_failed", line, "ill", "", *of, retry_seconds=again)
    elif state in ("paused", "removed"):
        line, command = f"is {state}", f"binlogd collector resume {word}"
        yield Condition(
            "collector_paused", line, "passing", "", _name(one), command, one["seconds"]
        )
    elif state != "running":
        line = f"{state}: {one['reason']}" if one["reason"] else f"is {state}"
        yield Condition("collector_away", line, lasting, "", _name(one), "", one["seconds"])
    elif one["reason"]:
        yield Condition("collector_blind", one["reason"], "passing", subject=_name(one))


def _kept(one: CollectorFigures) -> Iterator[Condition]:
    """How near the source is to removing what was not read."""
    purge_s, room = one["purge_seconds"], one["room_bytes"]
    behind = f"{size(one['beyond_bytes'] or 0)} behind"
    if one["state"] == "lost":
        return
    if purge_s is not None and purge_s < PURGE_SOON_S:
        line = f"is {behind}, and the source may remove its position in {duration(purge_s)}"
        yield Condition("collector_purge", line, subject=_name(one))
    elif room is not None and room < ROOM_LEFT:
        line = f"is {behind}, and the source removes its position after {size(room)} more of log"
        yield Condition("collector_purge", line, subject=_name(one))


def _name(one: CollectorFigures) -> str:
    return f"collector {one['collector']}"
