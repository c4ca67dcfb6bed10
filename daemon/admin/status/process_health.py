"""What is not well with what the whole process uses: its state directory, its credentials; and with
the gates, which another process closes. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from daemon.admin.status import document as doc
from daemon.admin.status.conditions import Condition
from daemon.admin.status.words import duration, size
from settings.counted import counted

ENDS_SOON_S = 14 * 86_400.0
"""A credential that ends within this time has to be replaced."""

UNSEEN_S = 600.0
"""``binlogd gate run`` shows every half minute that it looks, or once in so long by cron."""

FILLED = 0.8
"""A state directory that holds more of what it may is a condition. Less: a warning of what never
comes. More: no time for a person where spills grow by megabytes a second."""


def of_process(status: doc.Facts) -> Iterator[Condition]:
    """All of them, of a status document; an older daemon's says nothing of directory and gates."""
    yield from _state_dir(status.get("state_dir"))
    for gate in status.get("gates", []):
        yield from _gate(gate, status["uptime_seconds"])
    for one in status["credentials"]:
        left_s = (one["expires_ms"] - status["time_ms"]) / 1000
        if left_s < ENDS_SOON_S:
            line = f"ends in {duration(left_s)}" if left_s > 0 else "has ended"
            yield Condition("credential_ends", line, subject=one["credential"])


def _state_dir(state: doc.StateFigures | None) -> Iterator[Condition]:
    if state is None:
        return
    parts, limit = state["parts"], state["limit_bytes"]
    held = sum(parts.values())
    if held < FILLED * limit:
        return
    largest = sorted(parts, key=lambda part: -parts[part])[:3]
    of = "state_max_bytes" if state["bounded"] else "what its disk has room for"
    line = f"holds {size(held)} of {size(limit)} ({of}): "
    line += ", ".join(f"{part} {size(parts[part])}" for part in largest)
    if state["bounded"] and held >= limit:
        line += "; no more spills and dead letters are taken, what needs them waits"
    yield Condition("state_full", line, subject="state_dir")


def _gate(gate: doc.GateShown, up_s: float) -> Iterator[Condition]:
    looked_s, name = gate["looked_seconds"], gate["gate"]
    unseen_s = up_s if looked_s is None else looked_s
    if unseen_s > UNSEEN_S:
        since = "" if looked_s is None else f" for {duration(looked_s)}"
        line = f"nobody looks{since}: is binlogd-gates running?"
        command = "systemctl start binlogd-gates"
        yield Condition("gate_not_looked", line, subject=f"gate {name}", command=command)
        return
    if (looking_s := gate["looking_seconds"]) is not None and looking_s > UNSEEN_S:
        line = f"a look is under way for {duration(looking_s)}: much of the log is counted"
        subject = f"gate {name}"
        yield Condition("gate_looks_long", line, "passing", subject=subject, seconds=looking_s)
    for way, one in gate["undelivered"].items():
        if one["reason"] is not None and (one["seconds"] or 0.0) > UNSEEN_S:
            what = counted(one["notifications"], "notification is", "notifications are")
            line = f"{what} not taken by {way} for {duration(one['seconds'])}: {one['reason']}"
            yield Condition("gate_not_told", line, subject=f"gate {name}", seconds=one["seconds"])
