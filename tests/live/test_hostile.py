"""Hostile sources: which seeds have one, and that seeds of before are what they were."""

from __future__ import annotations

from random import Random

from tests.live import mariadb_kinds, postgres_ddl, postgres_kinds
from tests.live.generator import Generator
from tests.live.hostile import FIRST, MARIADB, NAMES, init_connect, row_image
from tests.live.schema import Schema

IMAGES = ("FULL", "NOBLOB", "MINIMAL")


def test_seeds_of_before_are_not_concerned() -> None:
    """Their statements are those by which they found something."""
    assert {row_image(seed, IMAGES) for seed in range(FIRST)} == {"FULL"}
    assert {row_image(FIRST + n, IMAGES) for n in range(40)} == set(IMAGES)


def test_odd_names_come_in_hostile_schemas_alone() -> None:
    """Of tables and of columns."""
    for is_hostile in (True, False):
        texts = ""
        for seed in range(15):
            schema = Schema(("a", "b"), hostile=is_hostile)
            generator = Generator(seed, schema, mariadb_kinds.KINDS)
            for _ in range(80):
                step = generator.next()
                generator.accepted(step)
                texts += "\n".join(step.statements)
        assert {name in texts for name in NAMES} == {is_hostile}


def test_a_setting_in_quotes_stays_whole() -> None:
    """In the statement that sets the statement."""
    assert "tx_isolation = ''READ-UNCOMMITTED''" in init_connect()
    assert all(name in init_connect() for name in MARIADB)


def test_a_table_with_a_child_keeps_its_columns() -> None:
    """A statement on the parent would change the child's behind the generator's back."""
    generator = Generator(5, Schema(("a", "b")), postgres_kinds.KINDS)
    while not generator.schema.tables:
        generator.accepted(generator.next())
    step = postgres_ddl.inherited(Random(1), generator.schema)
    assert step is not None
    parent, child = (t for t in step.after.tables if t.name in step.about)
    assert parent.related
    assert child.related
    assert parent.columns == child.columns
    only = Schema(("a", "b"), (parent, child))
    assert all(postgres_ddl.alter(Random(n), only) is None for n in range(20))
    truncated = postgres_ddl.truncate(Random(1), only)
    assert truncated is not None
    assert "TRUNCATE ONLY" in truncated.statements[0]
