"""The oracle of the chaos runs: aborted changes leave nothing, and the comparison sees a fault."""

from __future__ import annotations

import json
import random

from tests.chaos.lab import compare
from tests.chaos.tables import Table


def test_what_is_rolled_back_never_was() -> None:
    """Rows and columns are as at the last commit, whatever the transaction did, in any order."""
    rng = random.Random(3)
    table = Table("shop", "t", rng)
    kinds = set()
    for _ in range(500):
        before = (table.columns, table.expected())
        for _ in range(rng.randrange(1, 9)):
            table.alter() if rng.random() < 0.2 else table.change()
        kinds.add(table.columns != before[0])
        if rng.random() < 0.5:
            table.roll_back()
            assert (table.columns, table.expected()) == before
        table.undo.clear()
    assert kinds == {True, False}


def test_the_messages_alone_make_the_rows() -> None:
    """Whoever applies the changes, one by one, has the table's rows."""
    table = Table("shop", "t", random.Random(5))
    rows: dict[str, dict[str, str | None]] = {}
    for _ in range(2000):
        message = json.loads(table.change())
        (row,) = message["data"]
        if message["type"] != "INSERT":
            old = message["old"][0] if message["old"] else {}
            assert rows.pop(old.get("id", row["id"])) == row | old
        if message["type"] != "DELETE":
            rows[row["id"]] = row
    expected = [tuple(row.values()) for row in rows.values()]
    found = [tuple(None if v is None else str(v) for v in row) for row in table.expected()]
    assert sorted(expected, key=lambda row: int(str(row[0]))) == found


def test_a_gap_and_a_duplicate_are_told_apart() -> None:
    """Missing, there twice, and there though nobody wants it."""
    assert compare([(0, 1), (0, 2)], [(0, 2), (0, 1)]) == (0, 0)
    assert compare([(0, 1), (0, 2)], [(0, 1)]) == (1, 0)
    assert compare([(0, 1)], [(0, 1), (0, 1), (0, 9)]) == (0, 2)
