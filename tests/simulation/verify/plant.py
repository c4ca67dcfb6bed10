"""Differences that somebody makes in a target, and where they may have gone from there."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator

import msgspec

from databases.base.port import Key
from offsets.position import TopicPartition
from tests.simulation.loads.durable import LoadDurable


class Plants:
    """Made once, before anything is compared."""

    def __init__(self, number: int, hates: bool) -> None:
        """``hates``: some rows are refused by the sink for good, whenever a repair writes them."""
        self._number = number
        self._hates = hates
        self.keys: set[Key] = set()
        self.hated: set[Key] = set()
        self._done = False

    def plant(self, durable: LoadDurable, target: str, rng: random.Random) -> None:
        """Rows are missing, others are there, or have a wrong value; mostly of keys that change."""
        if self._done:
            return
        self._done = True
        table = durable.sink.tables[target]
        leaving = {
            (int(old[0]),)
            for source, offset, value in _logged(durable)
            if offset > table.marks.of(source)
            for old, _ in _moves(value)
        }
        for _ in range(self._number):
            kind, keys = rng.choice((0, 1, 2, 2, 2)), sorted(table.rows)
            if moving := [key for key in keys if key in leaving]:
                keys = keys if rng.random() < 0.3 else moving
            if kind == 0 or not keys:
                key = (durable.shape.id(rng.randrange(60)),)
                number = {field.name: field.id or 0 for field in table.plan.fields}
                table.rows[key] = {number["id"]: key[0], number["v"]: "extra"}
            elif kind == 1:
                key = rng.choice(keys)
                del table.rows[key]
            else:
                key = rng.choice(keys)
                columns = [field.id or 0 for field in table.plan.fields if field.name != "id"]
                table.rows[key] = {**table.rows[key], rng.choice(columns): "wrong"}
            self.keys.add((str(key[0]),))
        if self._hates:
            self.hated = {key for key in self.keys if rng.random() < 0.5}


def reached(durable: LoadDurable, keys: Iterable[Key]) -> set[Key]:
    """The keys that a wrong row of these may have come to, by any move of the log."""
    moves = [move for _, _, value in _logged(durable) for move in _moves(value)]
    found, before = set(keys), -1
    while len(found) > before:
        before = len(found)
        found |= {new for old, new in moves if old in found}
    return found


def _logged(durable: LoadDurable) -> Iterator[tuple[TopicPartition, int, bytes]]:
    """Messages whose rows may take values along to another key. With keyed partitions none does:
    what comes under a key there is a whole row."""
    for source, messages in durable.log.items():
        if not durable.shape.keyed:
            yield from ((source, offset, value) for offset, value in messages)


def _moves(value: bytes) -> Iterable[tuple[Key, Key]]:
    message = msgspec.json.decode(value)
    if message.get("type") != "UPDATE":
        return
    for row, old in zip(message["data"], message["old"], strict=True):
        if "id" in old:
            yield (old["id"],), (row["id"],)
