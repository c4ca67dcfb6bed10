"""Numbers, spans of time and commands as people read them. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from daemon.admin.status.document import Lag


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


def size(count: int) -> str:
    """Bytes for people: ``0 B``, ``1.5 MiB``."""
    if count < 1024:
        return f"{count} B"
    value = float(count)
    for unit in ("KiB", "MiB", "GiB"):
        value /= 1024
        if value < 1024 or unit == "GiB":
            break
    return f"{value:.1f} {unit}"


def short(number: float | None) -> str:
    """``950``, ``1.2k``, ``3.4M``; ``-`` when unknown."""
    if number is None or number != number:
        return "-"
    for limit, unit, name in ((1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k")):
        if number >= limit:
            return f"{number / unit:.1f}{name}"
    return f"{number:,.0f}" if number >= 10 or number == int(number) else f"{number:.1f}"


def messages(count: int) -> str:
    """``1 message``, ``1.2k messages``."""
    return f"{short(count)} message" + "s" * (count != 1)


def behind(item: Lag) -> str:
    """The lag of a pipeline, partition or target."""
    if item["lag_messages"] is None:
        oldest = item["lag_seconds"]
        return f"unknown, at least {duration(oldest)}" if oldest else "unknown"
    if not item["lag_messages"]:
        return "none"
    return f"{duration(item['lag_seconds'])} ({messages(item['lag_messages'])})"


def some(names: Iterable[str], count: int | None = None) -> str:
    """The first three; ``count``: of more than there are names."""
    named = list(names)
    first, more = named[:3], (len(named) if count is None else count) - 3
    return ", ".join(first) + (f" and {more:,} more" if more > 0 else "")
