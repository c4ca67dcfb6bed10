"""What is not well with what stands beside the daemon: its programs, a schema registry. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from daemon.admin.status import document as doc
from daemon.admin.status.conditions import Condition, Level
from daemon.admin.status.words import duration
from settings.counted import counted

RESTART_S = 60.0
"""One that ended is up again within seconds; after this it does not come by itself."""


def of_programs(status: doc.Facts, jvm_s: float) -> Iterator[Condition]:
    """Each that does not do its work: ill where it has been so for long, a JVM after ``jvm_s``."""
    session = status["spark"]
    if session is not None and (down_s := session["down_seconds"]) is not None:
        line = f"the JVM {session['last_end']} {down_s:.0f} s ago; it is started again"
        level: Level = "ill" if down_s > jvm_s else "passing"
        yield Condition("jvm_down", line, level, seconds=down_s)
    for one in status.get("programs", []):  # an older daemon's document has none
        if one["state"] in ("up", "ended"):
            continue
        what = _SAID[one["state"]]
        why = f": {one['why']}" if one["why"] else ""
        level = "ill" if one["seconds"] > RESTART_S else "passing"
        line = f"{what} for {duration(one['seconds'])}{why}"
        yield Condition(
            "program_down", line, level, subject=one["program"], seconds=one["seconds"]
        )  # fmt: skip


_SAID = {
    "waiting": "waits for what it needs",
    "starting": "is starting",
    "silent": "gives no answer",
    "down": "is down, and is started again",
}


def of_registry(p: doc.Pipeline, lasting_s: float) -> Iterator[Condition]:
    """An outage holds up messages that wait for it, if any: ill after ``lasting_s``."""
    waits = [
        f"{counted(each['messages'], 'message')} of {topic} wait for schema "
        f"{', '.join(each['schemas'])}"
        for topic, each in p["schemas_awaited"].items()
    ]
    if (away_s := p["registry_away_seconds"]) is not None:
        line = f"the schema registry gives no answer for {duration(away_s)}: {p['registry_error']}"
        level: Level = "ill" if waits and away_s > lasting_s else "passing"
        line = "; ".join((line, *waits))
        yield Condition("registry_away", line, level, seconds=away_s)
    elif waits:
        yield Condition("schema_awaited", "; ".join(waits), "passing")
