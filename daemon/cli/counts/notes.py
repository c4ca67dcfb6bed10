"""Why something can't be told: each reason once, with how often and the first place. Pure."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

from daemon.cli.counts.result import Untold
from offsets.position import TopicPartition

_MOST = 1000
_ELSE = "other reasons"


class Notes:
    """One thread's."""

    def __init__(self) -> None:
        self._known: dict[Hashable, Untold] = {}

    def add(
        self,
        key: Hashable,
        why: str,
        source: TopicPartition,
        offset: int,
        targets: tuple[str, ...] = (),
        transaction: str | None = None,
    ) -> None:
        """One more of this key. ``targets``: none: it concerns all."""
        if key not in self._known and len(self._known) >= _MOST:
            key, why, targets, transaction = _ELSE, _ELSE, (), None
        known = self._known.get(key)
        if known is None:
            self._known[key] = Untold(why, 1, source, offset, targets, transaction)
        else:
            self._known[key] = replace(known, count=known.count + 1)

    def all(self) -> tuple[Untold, ...]:
        """In the order in which they came up."""
        return tuple(self._known.values())
