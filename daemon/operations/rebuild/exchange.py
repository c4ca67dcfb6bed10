"""The end of rebuilds and loads, as jobs see it: a table that can't take its name yet. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from offsets.rebuild import FOR_GOOD, SwapRefused
from offsets.snapshot import Snapshot


def wait_before_next_s(why: SwapRefused) -> float:
    """A minute, and twice as long after each attempt."""
    return float(60 * 2 ** (why.attempts - 1))


def waits_for_name(why: SwapRefused) -> str:
    """What a job waits for whose table can't take its name now."""
    tried = f"tried {why.attempts} of {FOR_GOOD} times"
    return f"the new table can't take its name yet ({tried}): {why.reason}"


def stays(snapshot: Snapshot, targets: Iterable[str]) -> str:
    """What of rebuilds that were given up is still there, for a sentence's end."""
    open_ = (snapshot.rebuilds[name] for name in targets if name in snapshot.rebuilds)
    left = sorted(each.into for each in open_ if each.cancelled)
    if not left:
        return ""
    return f"; {', '.join(left)} is removed at a next start, once its sink can be reached"
