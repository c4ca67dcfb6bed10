"""Publications of sources: what they may have of a table, and which seeds have them."""

from __future__ import annotations

from random import Random

from tests.live import postgres_ddl
from tests.live.hostile import FIRST
from tests.live.postgres_kinds import KINDS
from tests.live.postgres_published import Published, added, drawn, is_picked
from tests.live.postgres_types import KEY_TYPES, TYPES
from tests.live.schema import Column, Maker, Schema, Table

TABLE = Table(
    ("a", "it's"),
    (Column("id", KEY_TYPES[0], False), *(Column(f"c{n}", one) for n, one in enumerate(TYPES))),
    ("id",),
)


def test_a_hostile_seed_in_two_has_its_tables_published_one_by_one() -> None:
    """And no seed of before."""
    assert not any(map(is_picked, range(FIRST)))
    assert 60 < sum(map(is_picked, range(FIRST, FIRST + 200))) < 140


def test_a_list_has_the_key_and_none_is_there_beside_whole_old_rows() -> None:
    """The server would refuse each UPDATE and DELETE."""
    found = [drawn(Random(n), TABLE, is_whole=False) for n in range(60)]
    lists = [one.columns for one in found if one.columns is not None]
    assert lists
    assert all("id" in columns for columns in lists)
    assert any(len(columns) < len(TABLE.columns) for columns in lists)
    assert all(drawn(Random(n), TABLE, is_whole=True).columns is None for n in range(60))


def test_a_filter_is_of_the_key_unless_old_rows_are_whole() -> None:
    """The old row's other columns are not there to be looked at."""
    ofs = [drawn(Random(n), TABLE, is_whole=False).rows for n in range(60)]
    assert any(ofs)
    assert not any('"c' in (text or "") for text in ofs)
    assert any('"c' in (drawn(Random(n), TABLE, is_whole=True).rows or "") for n in range(60))


def test_the_statement_names_all_of_it() -> None:
    """With the table alone, not its children."""
    assert added(TABLE, Published()) == 'ALTER PUBLICATION live ADD TABLE ONLY "a"."it\'s"'
    text = added(TABLE, Published(("id", "c1"), "id > 1"))
    assert text.endswith(' ("id", "c1") WHERE (id > 1)')


def test_tables_of_a_picked_seed_are_published_when_they_are_made() -> None:
    """In one transaction; nearly all of them. Elsewhere a publication has all there is."""
    for is_published in (True, False):
        schema = Schema(("a", "b"), published=is_published)
        made = [postgres_ddl.create(Random(n), schema) for n in range(40)]
        texts = ["; ".join(step.statements) for step in made if step is not None]
        assert (30 < sum("ADD TABLE" in text for text in texts) < 40) is is_published
        child = postgres_ddl.inherited(Random(1), schema.put(TABLE))
        assert child is not None
        assert ("ADD TABLE ONLY" in "; ".join(child.statements)) is is_published


def test_what_a_list_leaves_out_is_known_of_the_table() -> None:
    """So that a target of the user's own has no column that never comes."""
    makers: list[Maker] = [*KINDS]
    assert postgres_ddl.create in makers
    schema = Schema(("a", "b"), published=True)
    steps = [postgres_ddl.create(Random(n), schema) for n in range(40)]
    tables = [step.after.tables[0] for step in steps if step is not None]
    short = [one for one in tables if len(one.streamed) < len(one.columns)]
    assert short
    assert all(set(one.key) <= {column.name for column in one.streamed} for one in short)
