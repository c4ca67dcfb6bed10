"""Triggers of a target: those that decide what is written are refused, others are told."""

from __future__ import annotations

import re

import pytest
from structlog.testing import capture_logs

from changes.model.errors import TargetRefused
from changes.model.model import TargetName
from databases.base.url import parse_url
from sparkwriter.kit.marks_table.writer import LedgeredWriter
from sparkwriter.sql.connect import connect
from sparkwriter.sql.mysql.checks import sees_triggers
from sparkwriter.sql.try_out import try_out
from tests.sparkwriter.databases import JdbcTables


def trigger(sql, server, target: TargetName, when: str) -> None:
    name = f"shop.{target.table}"
    if server.is_postgres:
        sql(
            f"CREATE FUNCTION {name}_f() RETURNS trigger LANGUAGE plpgsql AS"
            " 'BEGIN NEW.n := 99; RETURN NEW; END'",
            f"CREATE TRIGGER mine {when} ON {name} FOR EACH ROW EXECUTE FUNCTION {name}_f()",
        )
    else:
        sql(f"CREATE TRIGGER shop.mine_{target.table} {when} ON {name} FOR EACH ROW SET @seen = 1")


@pytest.mark.parametrize("when", ["BEFORE INSERT", "BEFORE UPDATE", "BEFORE DELETE"])
def test_a_trigger_that_decides_what_is_written(
    when, server, sql, writer, table, orders, target
) -> None:
    """Also on a table that binlogd made; without it the target goes on."""
    trigger(sql, server, target, when)
    batch = table.batch(orders(("U", 3, "c", 1)), 2)
    with pytest.raises(TargetRefused, match=r"its trigger mine\w* runs BEFORE a row is written"):
        writer.write(batch)
    on = f" ON shop.{target.table}" if server.is_postgres else ""
    sql(f"DROP TRIGGER {'mine' if on else f'shop.mine_{target.table}'}{on}")
    writer.write(batch)


def test_a_trigger_of_a_partition(server, sql, writer, staging, orders, target) -> None:
    """It runs for the rows that go there, too."""
    if not server.is_postgres:
        return
    name = f"shop.{target.table}"
    sql(
        f"CREATE TABLE {name} (id bigint PRIMARY KEY, note text, n int) PARTITION BY HASH (id)",
        f"CREATE TABLE {name}_p PARTITION OF {name} FOR VALUES WITH (MODULUS 1, REMAINDER 0)",
    )
    writer.write(staging.batch(orders(("U", 1, "a", 1)), 1))
    trigger(sql, server, target._replace(table=f"{target.table}_p"), "BEFORE INSERT")
    with pytest.raises(TargetRefused, match="its trigger mine runs BEFORE"):
        writer.write(staging.batch(orders(("U", 2, "b", 1)), 2))


def test_a_trigger_that_follows_is_told(server, sql, tables, table, orders, target) -> None:
    """Once, when the target is opened; and by ``check-config --connect``."""
    trigger(sql, server, target, "AFTER UPDATE")
    fresh = LedgeredWriter(tables.store())
    with capture_logs() as logs:
        fresh.write(table.batch(orders(("U", 1, "b", 1)), 2))
        fresh.write(table.batch(orders(("U", 1, "c", 1)), 3))
    told = [one for one in logs if one["event"] == "triggers_run"]
    assert len(told) == 1
    assert told[0]["triggers"][0].startswith("mine")
    lines = list(try_out(server.connect, "binlogd", [target]))
    assert any("its triggers run with each write" in line for line in lines)


def test_a_trigger_that_names_a_table_without_its_schema(
    server, sql, tables, table, orders, target
) -> None:
    """PostgreSQL's sessions find it nowhere: the function is named, with the way out."""
    if not server.is_postgres:
        return
    name = f"shop.{target.table}"
    sql(
        f"CREATE TABLE {name}_log (id bigint)",
        f"CREATE FUNCTION {name}_f() RETURNS trigger LANGUAGE plpgsql AS"
        f" 'BEGIN INSERT INTO {target.table}_log VALUES (NEW.id); RETURN NULL; END'",
        f"CREATE TRIGGER mine AFTER INSERT OR UPDATE ON {name}"
        f" FOR EACH ROW EXECUTE FUNCTION {name}_f()",
    )
    way = rf"ALTER FUNCTION {name}_f\(\) SET search_path"
    batch = table.batch(orders(("U", 3, "c", 1)), 2)
    with capture_logs() as logs, pytest.raises(TargetRefused, match=way):
        LedgeredWriter(tables.store()).write(batch)
    (told,) = [one for one in logs if one["event"] == "triggers_run"]
    assert re.search(way, told["triggers"][0])
    sql(f"ALTER FUNCTION {name}_f() SET search_path = shop")
    with capture_logs() as logs:
        LedgeredWriter(tables.store()).write(batch)
    (told,) = [one for one in logs if one["event"] == "triggers_run"]
    assert told["triggers"] == ["mine"]
    assert sql(f"SELECT note FROM {name} WHERE id = 3") == [("c",)]
    assert sql(f"SELECT id FROM {name}_log") == [(3,)]


GRANTS = {
    "GRANT ALL PRIVILEGES ON *.* TO `u`@`%` WITH GRANT OPTION": True,
    "GRANT SELECT, TRIGGER ON `shop`.* TO `u`@`%`": True,
    "GRANT SELECT, TRIGGER ON `sh%`.* TO `u`@`%`": True,
    r"GRANT TRIGGER ON `sh\_p`.* TO `u`@`%`": False,
    "GRANT TRIGGER ON `sh_p`.* TO `u`@`%`": True,
    "GRANT TRIGGER ON `shop`.`t` TO `u`@`%`": True,
    "GRANT TRIGGER ON `shop`.`other` TO `u`@`%`": False,
    "GRANT SELECT, INSERT ON `shop`.* TO `u`@`%`": False,
    "GRANT SELECT (`TRIGGER`) ON `other`.`t` TO `u`@`%`": False,
    "GRANT `role`@`%` TO `u`@`%`": False,
}


@pytest.mark.parametrize("line", GRANTS)
def test_rights_by_which_triggers_are_seen(line) -> None:
    assert sees_triggers([line], TargetName("db", "shop", "t")) is GRANTS[line]


def test_a_user_who_can_t_see_triggers(server, sql, table, orders, target) -> None:
    """MySQL hides them: a table of somebody else is refused, one of binlogd's own is told of."""
    if server.is_postgres:
        return
    name = f"shop.{target.table}"
    sql("DROP USER IF EXISTS blind@'%'", "CREATE USER blind@'%'")
    sql("GRANT ALL ON binlogd.* TO blind@'%'")
    sql("GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, DROP ON shop.* TO blind@'%'")

    blind = JdbcTables(server, lambda: connect(parse_url(server.url), "blind", None))
    writer = LedgeredWriter(blind.store())
    with capture_logs() as logs:
        writer.write(table.batch(orders(("U", 1, "b", 1)), 2))
    assert [one["event"] for one in logs].count("triggers_unseen") == 1
    sql(f"CREATE TABLE {name}_own (id bigint PRIMARY KEY, note longtext, n int)")
    own = target._replace(table=f"{target.table}_own")
    table.target = own
    batch = table.batch(orders(("U", 1, "b", 1)), 1, after=-1)
    with pytest.raises(TargetRefused, match="lacks the right TRIGGER"):
        writer.write(batch)
    sql(f"GRANT TRIGGER ON {name}_own TO blind@'%'")
    LedgeredWriter(blind.store()).write(batch)
    blind.close()
    sql("DROP USER blind@'%'")
