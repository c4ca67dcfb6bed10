"""Refuses renames that come a second time, from readers whose messages have no log position.

After a restart Maxwell and Canal go back to their last stored position and send everything after it
again, in order. Rows and most statements can be repeated. A rename can't: by then the names may be
those of other tables or columns.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from hashlib import blake2b

from changes.model.model import Ddl

_RENAMINGS_KEPT = 10_000
"""For each partition: far more than are sent between two stored positions."""


@dataclass(slots=True)
class _Partition:
    next_offset: int = 0
    seen: OrderedDict[bytes, None] = field(default_factory=OrderedDict)


class RepeatedRenames:
    """Finds the repeated renames of one topic, in each partition's order. Used by one thread.

    It remembers the latest renames of this process; an older one is followed as if it were new.
    Without a position it is unknown whether the statement came again alone and is done already: so
    a repeated one is refused, and reported.
    """

    def __init__(self) -> None:
        self._here = _Partition()
        self._partitions: dict[str, _Partition] = {}

    def turn_to(self, partition: str, first: int, next_offset: int) -> None:
        """Announce the partition and offsets of the next records. Where the topic is read again,
        the renames remembered may be those of later records: they are forgotten."""
        here = self._partitions.get(partition)
        if here is None or first < here.next_offset:
            here = self._partitions[partition] = _Partition()
        here.next_offset = next_offset
        self._here = here

    def why_not(self, message: bytes, found: tuple[Ddl, ...]) -> str | None:
        """Why a statement can't be followed, None where it can. To be called once for each.

        ``message`` is all of the statement's message, its time included, without anything that
        differs when it is sent again.
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
