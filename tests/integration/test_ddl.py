"""DDL through the whole way: what the source's tables look like, the lake's do."""

from __future__ import annotations

from typing import Any

import pytest

from changes.model.errors import TargetRefused
from settings.exit import Exit
from sparkwriter.iceberg.sink import IcebergWriter
from tests.integration.rig import MYSQL_TYPES, Rig, canal, ddl


def types(**changed: str | None) -> dict[str, str]:
    """The columns' types with some added, changed or (None) gone."""
    merged: dict[str, str | None] = {**MYSQL_TYPES, **changed}
    return {name: type_ for name, type_ in merged.items() if type_ is not None}


def insert(rig: Rig, table: str, types: dict[str, str] = MYSQL_TYPES, **row: Any) -> bytes:
    """One row."""
    return canal(f"{rig.db}.{table}", "INSERT", [row], mysqlType=types)


def columns(rig: Rig, table: str) -> list[str]:
    """A target's columns."""
    return list(rig.spark.table(f"lake.`{rig.db}`.`{table}`").columns)


def test_columns_and_rows_follow_the_statements(rig: Rig) -> None:
    """Rename, widen, drop, truncate, with rows between: in order, and no name of before stays."""
    t = f"{rig.db}.orders"
    renamed = types(name=None, title="varchar(255)")
    wide = {**renamed, "id": "bigint(20)"}
    rig.produce(
        insert(rig, "orders", id=1, name="lost", qty=1),
        ddl(t, "TRUNCATE", "TRUNCATE TABLE orders"),
        insert(rig, "orders", id=1, name="a", qty=1),
        ddl(t, "ALTER", "ALTER TABLE orders RENAME COLUMN name TO title"),
        insert(rig, "orders", renamed, id=2, title="b", qty=2),
        ddl(t, "ALTER", "ALTER TABLE orders MODIFY id bigint NOT NULL"),
        insert(rig, "orders", wide, id=2**40, title="c", qty=3),
        ddl(t, "ALTER", "ALTER TABLE orders DROP COLUMN qty"),
        insert(rig, "orders", types(name=None, qty=None, title="text"), id=4, title="d"),
    )
    assert rig.run() is Exit.OK
    assert columns(rig, "orders") == ["id", "title", "qty"]
    assert rig.rows("orders") == [(1, "a", 1), (2, "b", 2), (4, "d", None), (2**40, "c", 3)]


def test_a_dropped_column_is_dropped_where_that_is_wanted(rig: Rig) -> None:
    """The pipeline's policy reaches its targets."""
    t = f"{rig.db}.orders"
    rig.produce(
        insert(rig, "orders", id=1, name="a", qty=1),
        ddl(t, "ALTER", "ALTER TABLE orders DROP COLUMN qty"),
    )
    section = rig.pipeline(ddl={"drop_column": "follow"})
    assert rig.run(rig.write_config(p=section)) is Exit.OK
    assert rig.rows("orders") == [(1, "a")]


def test_a_table_that_is_dropped_and_made_anew(rig: Rig) -> None:
    """The new one has its own rows and its own columns; the old one stays under another name."""
    t = f"{rig.db}.orders"
    other = {"id": "int(11)", "qty": "varchar(20)"}
    rig.produce(
        insert(rig, "orders", id=1, name="a", qty=1),
        ddl(t, "ERASE", "DROP TABLE IF EXISTS `orders`"),
        ddl(t, "CREATE", "CREATE TABLE orders (id int primary key, qty varchar(20))"),
        insert(rig, "orders", other, id=2, qty="many"),
    )
    assert rig.run() is Exit.OK
    assert rig.rows("orders") == [(2, "many")]
    assert rig.rows("orders__dropped_1") == [(1, "a", 1)]


RENAME = "RENAME TABLE orders TO _orders_del, _orders_gho TO orders"


def ghost_messages(rig: Rig) -> list[bytes]:
    """What gh-ost leaves in the binlog: the copy grows beside the table, then takes its place."""
    gho = f"{rig.db}._orders_gho"
    vip = types(vip="int(11)")
    return [
        insert(rig, "orders", id=1, name="a", qty=1),
        ddl(gho, "CREATE", "CREATE TABLE _orders_gho LIKE orders"),
        ddl(gho, "ALTER", "ALTER TABLE _orders_gho ADD vip int NOT NULL DEFAULT 5"),
        insert(rig, "_orders_gho", vip, id=1, name="a", qty=1, vip=5),
        insert(rig, "orders", id=2, name="b", qty=2),
        insert(rig, "_orders_gho", vip, id=2, name="b", qty=2, vip=5),
        ddl(f"{rig.db}.orders", "RENAME", RENAME),
        insert(rig, "orders", vip, id=3, name="c", qty=3, vip=9),
        ddl(f"{rig.db}._orders_del", "ERASE", "DROP TABLE _orders_del"),
    ]


def test_an_online_schema_change_with_its_shadow_tables(rig: Rig) -> None:
    """All lanes of the statement meet: the lake's table is the copy, as in the source."""
    rig.produce(*ghost_messages(rig))
    assert rig.run() is Exit.OK
    assert rig.rows("orders") == [(1, "a", 1, 5), (2, "b", 2, 5), (3, "c", 3, 9)]
    assert rig.rows("_orders_del") == [(1, "a", 1), (2, "b", 2)]


def test_an_online_schema_change_without_its_shadow_tables(rig: Rig) -> None:
    """The table goes on with the new columns; rows of before are null there, and that is said."""
    rig.produce(*ghost_messages(rig))
    config = rig.write_config(p=rig.pipeline(exclude=["*._orders_*"]))
    assert rig.run(config) is Exit.OK
    assert rig.rows("orders") == [(1, "a", 1, None), (2, "b", 2, None), (3, "c", 3, 9)]
    assert any("online schema change" in event["what"] for event in rig.events("ddl_kept"))


@pytest.mark.long
def test_an_end_after_each_statement_is_harmless(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """The statement has landed, nobody knows: the next run reads all again and changes nothing."""
    t = f"{rig.db}.orders"
    swapped = {"id": "int(11)", "qty": "varchar(255)", "name": "bigint(20)"}
    rig.produce(
        insert(rig, "orders", id=1, name="a", qty=1),
        ddl(t, "ALTER", "ALTER TABLE orders RENAME COLUMN name TO qty, RENAME COLUMN qty TO name"),
        insert(rig, "orders", swapped, id=2, name=2, qty="b"),
        ddl(t, "RENAME", "RENAME TABLE orders TO bills"),
        insert(rig, "bills", swapped, id=3, name=3, qty="c"),
        insert(rig, "orders", id=9, name="new", qty=9),
    )
    real = IcebergWriter.write
    crashes: list[str] = []
    config = rig.write_config()
    # A run that ends at one target's statement has the other one wait for it in vain.
    config.write_text(config.read_text().replace("drain_timeout_s = 60", "drain_timeout_s = 10"))

    def write(self: IcebergWriter, batch: Any) -> Any:
        state = real(self, batch)
        if batch.is_barrier:
            what = "RENAME" if batch.changes_name else "ALTER"
            crashes.append(f"{batch.target.table}: {what}")
            raise TargetRefused(f"{batch.target}: the answer is lost")
        return state

    ends = []
    with monkeypatch.context() as patch:
        patch.setattr(IcebergWriter, "write", write)
        while not ends or ends[-1] is not Exit.OK:
            before = len(crashes)
            ends.append(rig.run(config))
            assert len(ends) < 6
            assert ends[-1] is Exit.OK or len(crashes) > before
    # The new name's own part may be done with that of the old one.
    assert {"orders: ALTER", "orders: RENAME"} <= set(crashes), (ends, rig.log_file.read_text())
    found = rig.spark.sql(f"SELECT id, qty, name FROM lake.`{rig.db}`.bills ORDER BY id").collect()
    assert [tuple(row) for row in found] == [(1, "a", 1), (2, "b", 2), (3, "c", 3)]
    assert rig.rows("orders") == [(9, "new", 9)]
