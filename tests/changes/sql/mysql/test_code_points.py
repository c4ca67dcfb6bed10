"""The tokenizer and the servers agree on every code point of the basic plane."""

from __future__ import annotations

from collections.abc import Sequence

import pymysql
import pytest

from changes.sql.mysql.tokens import NotUnderstood, split, tokenize
from tests.changes.sql.mysql.code_points import FILE, PLACES, asked, written
from tests.sparkwriter.databases import running

LINES = FILE.read_text(encoding="ascii").splitlines()


def ours(sql: str) -> Sequence[str] | None:
    """The columns' names by the tokenizer, None where a column is not ``1 AS name``."""
    try:
        columns = split(tokenize(sql)[1:], ",")
    except NotUnderstood:
        return None
    plain = all({token.kind for token in column} <= {"word", "number"} for column in columns)
    two_or_three = all(len(column) in (2, 3) for column in columns)
    return [column[-1].text for column in columns] if plain and two_or_three else None


@pytest.mark.parametrize("place", PLACES)
def test_the_tokenizer_takes_each_code_point_as_the_servers_do(place: str) -> None:
    """As first, middle and last letter of a name, and between two words."""
    assert written(place, asked(ours, place)) == [line for line in LINES if line.startswith(place)]


@pytest.mark.soak
@pytest.mark.parametrize("kind", ["mariadb", "mysql"])
def test_the_servers_say_what_the_file_says(kind: str) -> None:
    """Each code point is asked again, of both kinds of server."""
    with (
        running(kind) as server,
        pymysql.connect(
            host="127.0.0.1", port=server.program.port, user="root", charset="utf8mb4"
        ) as connection,
    ):

        def ask(sql: str) -> Sequence[str] | None:
            with connection.cursor() as cursor:
                try:
                    cursor.execute(sql)
                except pymysql.Error:
                    return None
                return [column[0] for column in cursor.description]

        found = [line for place in PLACES for line in written(place, asked(ask, place))]
    assert found == LINES
