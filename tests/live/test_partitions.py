"""Topics of several partitions: by the seed, the database and the sink."""

from __future__ import annotations

from random import Random

from tests.live import mariadb_kinds, postgres_ddl, postgres_kinds
from tests.live.partitions import Routing, left_out, of_connector, routing
from tests.live.schema import Schema


def test_one_partition_leaves_all_as_it_was() -> None:
    """Or no kept seed could be had again."""
    assert {routing(seed, 1, True, "lake") for seed in range(9)} == {Routing.ONE}
    assert not of_connector(Routing.ONE, 1)
    assert not left_out(Routing.ONE, True)


def test_keys_choose_partitions_where_rows_carry_positions_alone() -> None:
    """In the lake, from PostgreSQL; elsewhere a table has one partition."""
    in_one_topic = [*range(4), *range(8, 16)]
    assert {routing(seed, 3, False, "lake") for seed in in_one_topic} == {
        Routing.BY_KEY, Routing.BY_TABLE,
    }  # fmt: skip
    assert {routing(seed, 3, True, "lake") for seed in in_one_topic} == {Routing.BY_TABLE}
    assert {routing(seed, 3, False, "pg") for seed in in_one_topic} == {Routing.BY_TABLE}


def test_each_table_has_a_topic_of_its_own_as_debezium_writes_it() -> None:
    """Of some seeds in JSON, and of all others; SQLite has one writer, so not there."""
    assert {routing(seed, 3, True, "maria") for seed in range(4, 8)} == {Routing.OWN_TOPIC}
    for seed in range(12):
        assert routing(seed, 3, True, "lake", is_json=False) is Routing.OWN_TOPIC
        assert routing(seed, 3, True, "file", is_json=False) is Routing.BY_TABLE
        assert routing(seed, 1, True, "lake", is_json=False) is Routing.ONE
    found = of_connector(Routing.OWN_TOPIC, 6)
    assert found["transforms"] == ""
    assert found["topic.creation.default.partitions"] == "6"


def test_statements_are_left_out() -> None:
    """They would come in the first partition, and rows in others."""
    kinds = {maker.__name__ for maker in mariadb_kinds.KINDS}
    out = set(left_out(Routing.BY_TABLE, True))
    assert kinds - out == {"rows", "create", "copied", "harmless"}
    assert out < kinds
    able = {maker.__name__ for maker in postgres_kinds.KINDS}
    for how in (Routing.BY_TABLE, Routing.BY_KEY):
        assert able - set(left_out(how, False)) == {"rows", "create", "alter"}
    for how in (Routing.BY_TABLE, Routing.BY_KEY):
        assert of_connector(how, 3)["include.schema.changes"] == "false"


def test_rows_by_key_have_whole_images() -> None:
    """A value that was not sent has no position of its own."""
    schema = Schema(("a", "b"), whole=True)
    made = [postgres_ddl.create(Random(n), schema) for n in range(20)]
    assert all("IDENTITY FULL" in "".join(step.statements) for step in made if step is not None)
