"""A change stream in Kafka becomes equal tables in a lake: the whole way, with the real parts."""

from __future__ import annotations

import pytest

from settings.exit import Exit
from tests.integration.rig import Rig, canal, ddl

P0 = "binlog"


@pytest.fixture(params=["merge", pytest.param("equality", marks=pytest.mark.long)])
def write(request: pytest.FixtureRequest) -> str:
    """Both ways to write a target."""
    way: str = request.param
    return way


def test_inserts_updates_deletes_and_key_changes_end_as_the_source_has_them(rig: Rig) -> None:
    """Several rows a message, an ``old`` that over-reports, a null, a key change."""
    t = f"{rig.db}.orders"
    rig.produce(
        canal(t, "INSERT", [{"id": i, "name": f"n{i}", "qty": i} for i in range(6)]),
        canal(
            t, "UPDATE",
            [{"id": 0, "name": "zero", "qty": 0}, {"id": 1, "name": "n1", "qty": 10}],
            old=[{"name": "n0"}, {"name": "n1", "qty": "1"}],
        ),
        canal(t, "DELETE", [{"id": 2, "name": "n2", "qty": 2}]),
        canal(t, "UPDATE", [{"id": 33, "name": "n3", "qty": 3}], old=[{"id": "3"}]),
        canal(t, "UPDATE", [{"id": 4, "name": None, "qty": 4}], old=[{"name": "n4"}]),
    )  # fmt: skip
    assert rig.run() is Exit.OK
    assert rig.rows("orders") == [
        (0, "zero", 0), (1, "n1", 10), (4, None, 4), (5, "n5", 5), (33, "n3", 3)
    ]  # fmt: skip


def test_a_second_batch_changes_what_the_first_one_wrote(rig: Rig) -> None:
    """Rows that are in the table already are updated, deleted and moved by MERGE."""
    t = f"{rig.db}.orders"
    rig.produce(canal(t, "INSERT", [{"id": i, "name": "a", "qty": i} for i in range(4)]))
    rig.run()
    rig.produce(
        canal(t, "UPDATE", [{"id": 1, "name": "b", "qty": 1}], old=[{"name": "a"}]),
        canal(t, "DELETE", [{"id": 2, "name": "a", "qty": 2}]),
        canal(t, "UPDATE", [{"id": 30, "name": "a", "qty": 3}], old=[{"id": "3"}]),
        canal(t, "INSERT", [{"id": 9, "name": "c", "qty": 9}]),
    )
    rig.run()
    assert rig.rows("orders") == [(0, "a", 0), (1, "b", 1), (9, "c", 9), (30, "a", 3)]


def test_a_replay_of_all_messages_changes_nothing_and_is_counted(rig: Rig) -> None:
    """With file and group lost all is read again: no new snapshot, every message dropped."""
    routes = [
        {"target": "lake.{database}.{table}"},
        {"target": "lake.{database}.{table}_log", "mode": "append"},
    ]
    messages = [
        canal(f"{rig.db}.t{i % 3}", "INSERT", [{"id": i, "name": "n", "qty": i}]) for i in range(30)
    ]
    rig.produce(*messages)
    rig.run(rig.write_config(p=rig.pipeline(target=None, route=routes)))
    tables = [f"t{i}{suffix}" for i in range(3) for suffix in ("", "_log")]
    before = {table: (rig.version(table), rig.rows(table)) for table in tables}
    again = rig.pipeline(target=None, route=routes, group=f"again-{rig.db}")
    for file in (rig.folder / "state").glob("*.json"):
        file.unlink()
    assert rig.run(rig.write_config(p=again)) is Exit.OK
    assert {table: (rig.version(table), rig.rows(table)) for table in tables} == before
    assert sum(e["messages"] for e in rig.events("replay_dropped")) == 2 * len(messages)


def test_one_source_feeds_an_upsert_and_a_changelog_target(rig: Rig) -> None:
    """Several routes for one table: each target is a lane of its own."""
    t = f"{rig.db}.orders"
    rig.produce(
        canal(t, "INSERT", [{"id": 1, "name": "a", "qty": 1}, {"id": 2, "name": "b", "qty": 2}]),
        canal(t, "UPDATE", [{"id": 1, "name": "c", "qty": 1}], old=[{"name": "a"}]),
        canal(t, "DELETE", [{"id": 2, "name": "b", "qty": 2}]),
    )
    routes = [
        {"target": "lake.{database}.{table}"},
        {"target": "lake.{database}.{table}_log", "mode": "append"},
    ]
    assert rig.run(rig.write_config(p=rig.pipeline(target=None, route=routes))) is Exit.OK
    assert rig.rows("orders") == [(1, "c", 1)]
    assert rig.rows("orders_log", "_offset, _index") == [
        ("I", 0, 0, 0, 1, "a", 1),
        ("I", 0, 0, 1, 2, "b", 2),
        ("U", 0, 1, 0, 1, "c", 1),
        ("D", 0, 2, 0, 2, "b", 2),
    ]


def test_a_table_without_a_key_is_a_changelog(rig: Rig) -> None:
    """Nothing tells its rows apart, so what happened is kept."""
    t = f"{rig.db}.clicks"
    rig.produce(canal(t, "INSERT", [{"id": 7, "name": "a", "qty": None}], pkNames=None))
    rig.run()
    assert rig.rows("clicks") == [("I", 0, 0, 0, 7, "a", None)]


def test_shards_merge_into_one_target_under_a_configured_key(rig: Rig) -> None:
    """Two source tables, one target, ``keys`` where the source's own would not do."""
    sections = rig.pipeline(target="lake.{database}.orders", keys=["id", "name"])
    rig.produce(
        canal(f"{rig.db}.orders_0", "INSERT", [{"id": 1, "name": "s0", "qty": 1}]),
        canal(f"{rig.db}.orders_1", "INSERT", [{"id": 1, "name": "s1", "qty": 2}]),
        canal(f"{rig.db}.orders_0", "DELETE", [{"id": 1, "name": "s0", "qty": 1}]),
    )
    assert rig.run(rig.write_config(p=sections)) is Exit.OK
    assert rig.rows("orders") == [(1, "s1", 2)]


def test_a_column_is_added_by_ddl_with_its_default_for_old_rows(rig: Rig) -> None:
    """Rows from before the ALTER show what MySQL shows; later rows carry their own."""
    t = f"{rig.db}.orders"
    wide = {"id": "int(11)", "name": "varchar(255)", "qty": "bigint(20)", "vip": "int(11)"}
    rig.produce(
        canal(t, "INSERT", [{"id": 1, "name": "a", "qty": 1}]),
        ddl(t, "ALTER", "ALTER TABLE orders ADD COLUMN vip INT NOT NULL DEFAULT 5"),
        canal(t, "INSERT", [{"id": 2, "name": "b", "qty": 2, "vip": 9}], mysqlType=wide),
    )
    assert rig.run() is Exit.OK
    assert rig.rows("orders") == [(1, "a", 1, 5), (2, "b", 2, 9)]


def test_a_column_without_ddl_is_added_and_a_type_widens(rig: Rig) -> None:
    """A DDL may be missing from the stream: the rows tell it all the same."""
    t = f"{rig.db}.orders"
    wide = {"id": "bigint(20)", "name": "varchar(255)", "qty": "bigint(20)", "note": "text"}
    rig.produce(canal(t, "INSERT", [{"id": 1, "name": "a", "qty": 1}]))
    rig.run()
    big = 2**40
    rig.produce(
        canal(t, "INSERT", [{"id": big, "name": "b", "qty": 2, "note": "x"}], mysqlType=wide)
    )
    assert rig.run() is Exit.OK
    assert rig.rows("orders") == [(1, "a", 1, None), (big, "b", 2, "x")]


def test_excluded_tables_move_the_position_only(rig: Rig) -> None:
    """Nothing is written for them, and nothing waits for them."""
    rig.produce(
        canal(f"{rig.db}.keep", "INSERT", [{"id": 1, "name": "a", "qty": 1}]),
        canal(f"{rig.db}.skip", "INSERT", [{"id": 1, "name": "a", "qty": 1}]),
    )
    assert rig.run(rig.write_config(p=rig.pipeline(exclude=[f"{rig.db}.sk*"]))) is Exit.OK
    (state,) = rig.snapshot().partitions.values()
    assert (state.frontier, state.confirmed) == (2, 2)
    tables = rig.spark.sql(f"SHOW TABLES IN lake.`{rig.db}`").collect()
    assert [row.tableName for row in tables] == ["keep"]


def test_an_empty_topic_is_caught_up_at_once(rig: Rig) -> None:
    """Nothing to do is no reason to wait."""
    assert rig.run() is Exit.OK


def test_a_target_changes_the_way_it_is_written_while_data_flows(rig: Rig, write: str) -> None:
    """The next batch is written the other way: that is all of it."""
    t = f"{rig.db}.orders"
    other = {"merge": "equality", "equality": "merge"}[write]
    rig.produce(canal(t, "INSERT", [{"id": i, "name": "a", "qty": i} for i in range(4)]))
    rig.run()
    found = []
    for number, way in enumerate((other, write, other)):
        rig.produce(
            canal(t, "UPDATE", [{"id": 1, "name": way, "qty": number}], old=[{"name": "a"}]),
            canal(t, "INSERT", [{"id": 10 + number, "name": way, "qty": 0}]),
        )
        rig.run(rig.write_config(p=rig.pipeline(write=way)))
        deletes = rig.spark.sql(f"SELECT content FROM lake.{t}.delete_files").collect()
        found.append(sum(row.content == 2 for row in deletes))
    assert rig.rows("orders") == [
        (0, "a", 0), (1, other, 2), (2, "a", 2), (3, "a", 3),
        (10, other, 0), (11, write, 0), (12, other, 0),
    ]  # fmt: skip
    assert found == ([1, 1, 2] if other == "equality" else [0, 1, 1])
