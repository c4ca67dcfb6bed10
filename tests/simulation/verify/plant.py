"""Differences that somebody makes in a target, and where they may have gone from there."""

from __future__ import annotations

import random
from collections.abc import Iterable

import msgspec

from databases.base.port import Key
from tests.simulation.loads.durable import LoadDurable
from tests.simulation.sink import FakeSink
from tests.simulation.stream import Log


class Plants:
    """Made once, before anything is compared."""

    def __init__(self, number: int, hates: bool) -> None:
        """``hates``: some rows are refused by the sink for good, whenever a repair writes them."""
        self._number = number
        self._hates = hates
        self.keys: set[Key] = set()
        self.hated: set[Key] = set()
        self._done = False

    def plant(self, sink: FakeSink, target: str, rng: random.Random, log: Log) -> None:
        """Rows are missing, others are there, or have a wrong value; mostly of keys that change."""
        if self._done:
            return
        self._done = True
        table = sink.tables[target]
        leaving = {
            (int(old[0]),)
            for source, messages in log.items()
            for offset, value in messages
            if offset > table.marks.of(source)
            for old, _ in _moves(value)
        }
        for _ in range(self._number):
            kind, keys = rng.choice((0, 1, 2, 2, 2)), sorted(table.rows)
            if moving := [key for key in keys if key in leaving]:
                keys = keys if rng.random() < 0.3 else moving
            if kind == 0 or not keys:
                key = (rng.randrange(60),)
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
    moves = [move for log in durable.log.values() for _, value in log for move in _moves(value)]
    found, before = set(keys), -1
    while len(found) > before:
        before = len(found)
        found |= {new for old, new in moves if old in found}
    return found


def _moves(value: bytes) -> Iterable[tuple[Key, Key]]:
    message = msgspec.json.decode(value)
    if message.get("type") != "UPDATE":
        return
    for row, old in zip(message["data"], message["old"], strict=True):
        if "id" in old:
            yield (old["id"],), (row["id"],)
