"""Which own tables a live run makes. The tables themselves are the fuzz's."""

from __future__ import annotations

import re
from random import Random

import pytest

from tests.live.own import make, wider, word
from tests.live.postgres_types import TYPES
from tests.live.schema import Column, Table
from tests.own_tables.tables import Kind, OwnTable, Sent

TABLE = Table(("shop", "a b"), tuple(Column(f"c{n}", one) for n, one in enumerate(TYPES)), ("c1",))


class Keeper:
    """Takes every table, and keeps what it was given."""

    kind: Kind = "postgres"

    def __init__(self) -> None:
        self.given: list[OwnTable] = []

    def mark(self, name: str) -> str:
        return f'"{name}"'

    def make_own(self, table: Table, own: OwnTable) -> str:
        self.given.append(own)
        return ""

    def catalogue(self) -> list[str]:
        return ["point"]


@pytest.mark.parametrize(
    ("sql", "zoned", "said"),
    [
        ("TINYINT(1)", True, "int"), ("INT UNSIGNED", True, "long"),
        ("BIGINT UNSIGNED", True, "decimal(20, 0)"), ("DECIMAL(38,10)", True, "decimal(38, 10)"),
        ("TIMESTAMP(6)", True, "timestamptz"), ("timestamp(3)", False, "timestamp"),
        ("timestamptz", False, "timestamptz"), ("text[]", False, "string"),
        ("double precision", False, "double"), ("ENUM('a')", True, "string"),
    ],
)  # fmt: skip
def test_a_source_s_type_has_a_word(sql: str, zoned: bool, said: str) -> None:
    """As the docs on types have it."""
    assert word(sql, zoned) == said


def test_some_tables_are_the_user_s_own_and_all_their_names_are_quoted() -> None:
    """With the source's key; the others are left to binlogd."""
    keeper = Keeper()
    made = [make(Random(seed), TABLE, False, keeper) for seed in range(40)]
    assert 5 < sum(made) < 35
    assert len(keeper.given) == sum(made)
    for own in keeper.given:
        assert own.create.startswith('CREATE TABLE "shop"."a b" ("c0" ')
        assert 'PRIMARY KEY ("c1")' in own.create


def test_most_tables_take_all_that_is_sent() -> None:
    """Or nearly every target would be refused by name, and none be equal."""
    keeper = Keeper()
    for seed in range(60):
        make(Random(seed), TABLE, False, keeper)
    narrow = [own for own in keeper.given if re.search(r"smallint|\(40\)|json|_t\b", own.create)]
    assert 0 < len(narrow) < len(keeper.given) / 3


def test_a_moment_of_a_zone_is_kept_in_a_column_that_has_one() -> None:
    """Another one is refused by name."""
    own = OwnTable((), "CREATE TABLE t (`a` DATETIME(6), `b` DATETIME(6))", ())
    sent = [Sent("`a`", "timestamptz"), Sent("`b`", "timestamp")]
    assert wider(own, sent).create == "CREATE TABLE t (`a` TIMESTAMP(6), `b` DATETIME(6))"
