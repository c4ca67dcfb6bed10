"""Spans of time as people read them."""

from __future__ import annotations


def duration(seconds: float | None) -> str:
    """Seconds for people: ``0.3 s``, ``12 s``, ``4 min``, ``3 h``, ``2 d``; ``-`` when unknown."""
    if seconds is None:
        return "-"
    if seconds < 10:
        return f"{seconds:.1f} s"
    for limit, unit, name in ((120, 1, "s"), (7200, 60, "min"), (172_800, 3600, "h")):
        if seconds < limit:
            return f"{seconds / unit:.0f} {name}"
    return f"{seconds / 86_400:.0f} d"
