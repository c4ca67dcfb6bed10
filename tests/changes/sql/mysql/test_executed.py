"""Statements run at real servers: what the parser says of each is what the server did, or told.

``reported.txt`` has statements in the manner of those that users of other readers of binlogs
reported as not understood, one a line; ``␤`` stands for a new line.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import pytest

from tests.changes.sql.mysql.executed import Database, database, verdict
from tests.changes.sql.mysql.random_alters import statement

REPORTED = [
    line.replace("␤", "\n")
    for line in Path(__file__).with_name("reported.txt").read_text(encoding="utf-8").splitlines()
]
RANDOM = 1500


def differing(server: Database, statements: list[str]) -> tuple[list[str], Counter[str]]:
    """Those that differ without a word, and how many there are of each verdict."""
    found, counts = [], Counter[str]()
    for sql in statements:
        said = verdict(server, sql)
        if said in ("equal", "told", "invalid"):
            counts[said] += 1
        else:
            found.append(f"{sql!r}: {said}")
    return found, counts


@pytest.mark.long
def test_reported_statements_are_followed_as_mariadb_runs_them() -> None:
    """Or told; few are, of the 200 and more that it takes."""
    with database("mariadb") as server:
        wrong, counts = differing(server, REPORTED)
    assert wrong == []
    assert counts["equal"] + counts["told"] >= 200
    assert counts["told"] <= 41


@pytest.mark.soak
def test_reported_statements_are_followed_as_mysql_runs_them() -> None:
    """The same of MySQL, which knows fewer of them."""
    with database("mysql") as server:
        wrong, counts = differing(server, REPORTED)
    assert wrong == []
    assert counts["equal"] + counts["told"] >= 180


@pytest.mark.soak
@pytest.mark.parametrize("kind", ["mariadb", "mysql"])
@pytest.mark.parametrize("seed", [1, 2])
def test_random_statements_are_followed_as_the_server_runs_them(kind: str, seed: int) -> None:
    """However they are spelled; at least a quarter of them is taken by the server."""
    rng = Random(seed)
    with database(kind) as server:
        wrong, counts = differing(server, [statement(rng) for _ in range(RANDOM)])
    assert wrong == []
    assert counts["equal"] > RANDOM // 4
