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
        of_records: bool = False,
    ) -> None:
        """One more of this key. ``targets``: none: it concerns all. ``of_records``: it keeps
        records from being counted, whoever says how many there are."""
        if key not in self._known and len(self._known) >= _MOST:
            key, why, targets, transaction, of_records = _ELSE, _ELSE, (), None, True
        known = self._known.get(key)
        if known is None:
            self._known[key] = Untold(why, 1, source, offset, targets, transaction, of_records)
        else:
            self._known[key] = replace(known, count=known.count + 1)

    def all(self) -> tuple[Untold, ...]:
        """In the order in which they came up."""
        return tuple(self._known.values())
