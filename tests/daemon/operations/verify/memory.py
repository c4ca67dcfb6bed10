"""Sides of plain rows: what the comparison and the looks are tested with."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from changes.sql.spark.checksums import Interval, key_text
from daemon.operations.verify.sides import NONE, Group, Sum
from databases.base.port import Key, Texts


def hash_of(texts: Texts) -> str:
    """As ``changes.sql.spark.checksums`` has it, all columns being free."""
    fields = ("n," if text is None else f"{len(text)}:{text}" for text in texts)
    return hashlib.sha256("".join(fields).encode()).hexdigest()


def key_hash(key: Key) -> str:
    """The hash of a key of free texts."""
    return hashlib.sha256(key_text(key, [True] * len(key)).encode()).hexdigest()


@dataclass
class MemorySide:
    """``sides.Side`` over a dict; counts the hashes that it gave."""

    table: dict[Key, Texts] = field(default_factory=dict)
    hashes_read: int = 0

    def _placed(self, intervals: Sequence[Interval], digits: int) -> list[tuple[Group, Key]]:
        found = []
        for key in self.table:
            for place, (low, high) in enumerate(intervals):
                whole = (low, high) == (None, None)
                number = 0 if whole else int(key[0])
                if (low is None or number > low) and (high is None or number <= high):
                    found.append(((place, key_hash(key)[:digits]), key))
        return found

    def sums(self, intervals: Sequence[Interval], digits: int) -> Mapping[Group, Sum]:
        found: dict[Group, Sum] = {}
        for group, key in self._placed(intervals, digits):
            number = int(hash_of(self.table[key])[:16], 16)
            found[group] = found.get(group, NONE).plus(1, number)
        return found

    def hashes(
        self, intervals: Sequence[Interval], digits: int, groups: Collection[Group]
    ) -> Mapping[Key, str | None]:
        found: dict[Key, str | None] = {
            key: hash_of(self.table[key])[:16]
            for group, key in self._placed(intervals, digits)
            if group in groups
        }
        self.hashes_read += len(found)
        return found

    def rows(self, keys: Sequence[Key]) -> Mapping[Key, Texts]:
        return {key: self.table[key] for key in keys if key in self.table}
