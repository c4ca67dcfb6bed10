"""Which differences are planted, and by which statements."""

from __future__ import annotations

import sqlite3
from random import Random

import pytest

from tests.live.comparison import Found
from tests.live.plants import planned
from tests.live.sinks import Plant, Stored

NAME = ("shop", "orders")
ROWS = [(1, "a"), (2, None), (3, "c")]
SOURCE = Found(
    (("id", "number"), ("Note", "text")), tuple((str(id_), note) for id_, note in ROWS), ("id",)
)
STORED = Stored(("id", "note"), [{"id": id_, "note": note} for id_, note in ROWS])


@pytest.mark.parametrize("seed", range(30))
def test_each_planted_row_differs_and_no_other(seed: int) -> None:
    """In a real table: what is told to differ is what the statements make differ."""
    made = planned(Random(seed), {NAME: SOURCE}, {NAME: STORED})
    assert made
    with sqlite3.connect(":memory:") as file:
        file.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, note TEXT)")
        file.executemany("INSERT INTO orders VALUES (?, ?)", ROWS)
        for one in made:
            file.execute(one.sql("orders", '"'))
        now = set(file.execute("SELECT id, note FROM orders").fetchall())
    assert {key for key, _ in now ^ set(ROWS)} == {one.differs for one in made}


def test_each_kind_comes() -> None:
    """A changed row, one too few, one too many."""
    made = [
        one for seed in range(30) for one in planned(Random(seed), {NAME: SOURCE}, {NAME: STORED})
    ]
    assert {one.what for one in made} == set(Plant)


def test_nothing_is_planted_where_the_key_is_no_whole_number() -> None:
    """Such a row could not be named in all sinks alike."""
    texts = Found((("id", "text"),), (("a",),), ("id",))
    assert not planned(Random(1), {NAME: texts}, {NAME: Stored(("id",), [{"id": "a"}])})
