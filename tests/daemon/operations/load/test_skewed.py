"""Loads of tables whose keys are skewed: no range has more rows than asked for, none is slow.

Of each kind of key there is an even table, and one with 95 % of its rows in 1 % of the key's range.
``LOAD_ROWS`` makes them larger.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from daemon.operations.load.source_tables import SourceTables
from tests.daemon.operations.copies import Copy
from tests.databases.base.servers import Server
from tests.needs import needed

pytestmark = [pytest.mark.integration, pytest.mark.long, pytest.mark.timeout(900)]

ROWS = int(os.environ.get("LOAD_ROWS", "100000"))
SIZE = ROWS // 40

TURNS = 3
SLOWER = 3.0
"""A skewed table takes at most so many times as long as an even one with a key of its kind, the
best of three turns each."""


class Key(NamedTuple):
    """The columns of a key; their values in an even table and in a skewed one, by ``seq``; and a
    number that grows with the key, to show that it is skewed."""

    columns: str
    names: str
    even: str
    skewed: str
    number: str


FEW = f"IF(seq % 20, seq, {ROWS} + 99 * seq)"
"""95 % of the numbers are below one hundredth of the greatest."""

KEYS = {
    "number": Key("id INT", "id", "seq", FEW, "id"),
    "text": Key(
        "id VARCHAR(40) COLLATE utf8mb4_general_ci",
        "id",
        "CONCAT('Customer ', LPAD(seq, 9, '0'))",
        f"CONCAT('Customer ', LPAD({FEW}, 9, '0'))",
        "CAST(RIGHT(id, 9) AS UNSIGNED)",
    ),
    "two columns": Key(
        "tenant INT, id INT", "tenant, id", "seq % 100, seq", "IF(seq % 20, 7, 100 + seq), seq",
        "tenant",
    ),
}  # fmt: skip


class Read(NamedTuple):
    """What a load reads of a table: the rows of each range, the seconds, and how many rows the
    server has looked at for it."""

    rows: list[int]
    seconds: float
    looked_at: int


def filled(server: Server, folder: Path, key: Key, values: str) -> Copy:
    """The table with its rows."""
    copy = Copy(server, server, folder)
    more = "name VARCHAR(60), note VARCHAR(80), qty INT"
    copy.run(
        f"CREATE TABLE {{t}} ({key.columns}, {more}, PRIMARY KEY ({key.names})) CHARSET utf8mb4",
        f"USE {copy.schema}",
        f"INSERT INTO {{t}} SELECT {values}, CONCAT('name ', seq), CONCAT('é ', seq * 31), seq"
        f" FROM seq_1_to_{ROWS}",
        "ANALYZE TABLE {t}",
    )
    return copy


def read(copy: Copy) -> Read:
    """All of it, two ranges at a time, as a load does."""
    tables = SourceTables(copy.control, "p", anew=True)  # type: ignore[arg-type]
    rows, before, begun = [], looked_at(copy.source), time.monotonic()
    try:
        parts = list(tables.ranges(copy.table, SIZE))
        for at in range(0, len(parts), 2):
            chunks = tables.read(copy.table, str(copy.target), parts[at : at + 2], "1")
            rows += [chunk.rows for chunk in chunks]
            tables.remove(chunks)
    finally:
        tables.close()
    return Read(rows, time.monotonic() - begun, looked_at(copy.source) - before)


def looked_at(server: Server) -> int:
    """How many rows the server has looked at since its start, by key or one after another."""
    database = server.open()
    try:
        found = database.ask("SHOW GLOBAL STATUS LIKE 'Handler_read%'")
        return sum(int(str(count)) for name, count in found if "deleted" not in str(name))
    finally:
        database.close()


def largest_of_equal_width(copy: Copy, key: Key) -> int:
    """How many rows the fullest of as many ranges has, if least and greatest key are all one has:
    what partitions by a column's bounds come to."""
    width = f"((SELECT MAX({key.number}) FROM {copy.table}) / {ROWS // SIZE})"
    database = copy.source.open()
    try:
        counts = database.ask(
            f"SELECT COUNT(*) FROM {copy.table} GROUP BY FLOOR({key.number} / {width})"
        )
        return max(int(str(count)) for (count,) in counts)
    finally:
        database.close()


@pytest.mark.parametrize("name", KEYS)
def test_ranges_of_a_skewed_table_are_bounded(
    name: str, servers: Mapping[str, Server], tmp_path: Path
) -> None:
    """The fullest range has the rows that were asked for, where ranges of equal width would have
    nearly all; and the table is read about as quickly as an even one."""
    with needed():
        server = servers["mariadb"]
    key = KEYS[name]
    even, skewed = (filled(server, tmp_path, key, v) for v in (key.even, key.skewed))
    assert largest_of_equal_width(even, key) < 2 * SIZE
    naive = largest_of_equal_width(skewed, key)
    assert naive > 0.9 * ROWS
    turns = [(read(even), read(skewed)) for _ in range(TURNS)]
    best: list[float] = []
    for told, found in zip(("even", "skewed"), zip(*turns, strict=True), strict=True):
        for each in found:
            assert sum(each.rows) == ROWS
            assert max(each.rows) == SIZE
            assert len(each.rows) == ROWS // SIZE + 1
            # Once for the ranges, in the key's index, and once for the rows.
            assert each.looked_at < 2.5 * ROWS
        best.append(min(each.seconds for each in found))
        print(
            f"{name}, {told}: {ROWS / best[-1]:,.0f} rows/s, fullest range {max(found[0].rows)} of"
            f" {SIZE} asked for, {found[0].looked_at / ROWS:.2f} rows looked at for each"
        )
    print(f"{name}: ranges of equal width would have up to {naive} rows")
    assert best[1] < SLOWER * best[0]
