"""Cuts a table into ranges by its own keys: a walk over the key's index, step by step."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from daemon.databases import selects
from daemon.databases.port import DatabaseRefused, KeyRange, SourceTable

Ask = Callable[[str], list[tuple[object, ...]]]


def walk(words: selects.Dialect, table: SourceTable, rows: int, ask: Ask) -> Iterator[KeyRange]:
    """``Database.ranges``: each bound is the key of a row that is there, so ranges are as full as
    the keys are dense, whatever their distribution."""
    if rows < 1:
        raise ValueError("a range has a row at least")
    selects.key_columns(table)
    low = None
    while True:
        found = ask(selects.bound(words, table, low, rows))
        if not found:
            yield KeyRange(low, None)
            return
        high = tuple(str(text) for text in found[0])
        if high == low:
            # Its literal sorts before the row itself: the walk would stand still for ever.
            raise DatabaseRefused(f"{table.name}: the key {high} is not found by its own text")
        yield KeyRange(low, high)
        low = high
