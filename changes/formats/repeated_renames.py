"""Refuses renamings that come a second time, for readers that tell no place in the server's log.

Maxwell and Canal that begin again go back to what was noted of their place: what they sent since
comes once more, in its order. Rows and most statements end where they ended before. A renaming does
not: by then the names are other tables' or columns'.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from hashlib import blake2b

from changes.model import Ddl

_RENAMINGS_KEPT = 10_000
"""Of each partition: far more than are sent between two notes of a place."""


@dataclass(slots=True)
class _Partition:
    next_offset: int = 0
    seen: OrderedDict[bytes, None] = field(default_factory=OrderedDict)


class RepeatedRenames:
    """Of one topic's stream, in each partition's order. Used by one thread.

    What it remembers is of this process alone, and of the latest renamings: an older one is
    followed, as if it came for the first time. Whether nothing but the statement came again, so
    that it is done already, can't be told without its place: it is refused, which is told.
    """

    def __init__(self) -> None:
        self._here = _Partition()
        self._partitions: dict[str, _Partition] = {}

    def turn_to(self, partition: str, first: int, next_offset: int) -> None:
        """Say whose records come now, and which. Where they are read a second time from the topic,
        what was remembered may be of records behind them, and counts no more."""
        here = self._partitions.get(partition)
        if here is None or first < here.next_offset:
            here = self._partitions[partition] = _Partition()
        here.next_offset = next_offset
        self._here = here

    def why_not(self, message: bytes, found: tuple[Ddl, ...]) -> str | None:
        """Why a statement can't be followed, None where it can. Each is asked for once.

        ``told`` is all that its message says of it, its time included, and nothing that differs
        when it is sent again.
        """
        if not any(ddl.renames for ddl in found):
            return None
        seen, mark = self._here.seen, blake2b(message, digest_size=16).digest()
        if mark in seen:
            return (
                f"{found[0].table}: a renaming of the same words and time came before, so its "
                f"reader began again and sent it twice: not done once more"
            )
        seen[mark] = None
        if len(seen) > _RENAMINGS_KEPT:
            seen.popitem(last=False)
        return None
