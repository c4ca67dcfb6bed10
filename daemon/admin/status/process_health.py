"""What is not well with what the whole process uses: its state directory, its credentials. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from daemon.admin.status import document as doc
from daemon.admin.status.conditions import Condition
from daemon.admin.status.words import duration, size

ENDS_SOON_S = 14 * 86_400.0
"""A credential that ends within this time has to be replaced."""

FILLED = 0.8
"""A state directory that holds more of what it may is a condition. Less: a warning of what never
comes. More: no time for a person where spills grow by megabytes a second."""


def of_process(status: doc.Facts) -> Iterator[Condition]:
    """Both, of a status document; an older daemon's says nothing of its directory."""
    yield from _state_dir(status.get("state_dir"))
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
