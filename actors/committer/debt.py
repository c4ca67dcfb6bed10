"""Frontier debt: what one target's delay costs the others, and which target causes it.

After a restart the messages of all targets above the frontier are read again, and until then the
log must keep them. When the target at the frontier makes that debt large, it is named, once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from actors.contract import effects as fx
from offsets.position import TopicPartition


@dataclass(frozen=True, slots=True)
class DebtBounds:
    """When a debt is worth a warning: so many messages above the frontier, or so many seconds in
    which one target's same message held it."""

    messages: int
    seconds: float


class HeldFrontier(NamedTuple):
    """A partition of which something is pending: who holds its frontier, and what is read next."""

    source: TopicPartition
    target: str
    frontier: int
    position: int


class FrontierDebt:
    """Notes since when frontiers stand. Called with the committer's clock, monotonic seconds."""

    def __init__(self, bounds: DebtBounds) -> None:
        self._bounds = bounds
        self._since: dict[TopicPartition, tuple[int, float]] = {}
        self._named: dict[TopicPartition, set[str]] = {}

    def look(self, held: Iterable[HeldFrontier], now: float) -> list[fx.CommitterEffect]:
        """A warning for each new culprit, and a line for each partition that is free of debt again.

        ``held`` are all partitions that are held now. One culprit is named once for as long as
        the partition is in debt, though others hold its frontier in between.
        """
        out: list[fx.CommitterEffect] = []
        in_debt: set[TopicPartition] = set()
        standing: dict[TopicPartition, tuple[int, float]] = {}
        for each in held:
            seen = self._since.get(each.source)
            since = seen[1] if seen is not None and seen[0] == each.frontier else now
            standing[each.source] = (each.frontier, since)
            messages, seconds = each.position - each.frontier, now - since
            if messages < self._bounds.messages and seconds < self._bounds.seconds:
                continue
            in_debt.add(each.source)
            named = self._named.setdefault(each.source, set())
            if each.target not in named:
                named.add(each.target)
                out.append(_warning(each, messages, seconds))
        self._since = standing
        for source in [source for source in self._named if source not in in_debt]:
            culprits = sorted(self._named.pop(source))
            fields = {"source": str(source), "were_held_by": culprits}
            out.append(fx.Log("info", "frontier_free", fields))
        return out


def _warning(each: HeldFrontier, messages: int, seconds: float) -> fx.Log:
    fields = {
        "source": str(each.source),
        "target": each.target,
        "offset": each.frontier,
        "messages": messages,
        "seconds": round(seconds, 1),
    }
    return fx.Log("warning", "frontier_held", fields)
