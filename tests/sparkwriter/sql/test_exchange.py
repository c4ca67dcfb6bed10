"""A table that takes another's name: refused by name before anything is done, or done whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from actors.contract.writes import Swap
from changes.model.errors import SinkUnavailable, TargetRefused
from changes.model.model import TargetName
from sparkwriter.kit.marks_table.writer import LedgeredWriter
from sparkwriter.sql.base.session import Session
from sparkwriter.sql.store import JdbcStore
from tests.sparkwriter.conftest import LANE
from tests.sparkwriter.databases import JdbcTables, Server

POSTGRES = {
    "view": ("CREATE VIEW shop.v_{t} AS SELECT note FROM shop.{t}", "view shop.v_{t}"),
    "materialized view": (
        "CREATE MATERIALIZED VIEW shop.m_{t} AS SELECT note FROM shop.{t}",
        "materialized view shop.m_{t}",
    ),
    "foreign key to it": (
        "CREATE TABLE shop.c_{t} (a bigint REFERENCES shop.{t} (id))",
        "constraint c_{t}_a_fkey on table shop.c_{t}",
    ),
    "child": ("CREATE TABLE shop.i_{t} () INHERITS (shop.{t})", "inheritance of shop.i_{t} from"),
    "row type": ("CREATE TABLE shop.r_{t} (a shop.{t})", "column a of table shop.r_{t}"),
    "function": (
        "CREATE FUNCTION shop.a_{t}() RETURNS bigint LANGUAGE sql"
        " BEGIN ATOMIC SELECT count(*) FROM shop.{t}; END",
        "function shop.a_{t}()",
    ),
    "sequence": (
        "CREATE SEQUENCE shop.s_{t} OWNED BY shop.{t}.id",
        "CREATE TABLE shop.d_{t} (a bigint DEFAULT nextval('shop.s_{t}'))",
        "default value for column a of table shop.d_{t}",
    ),
}
MYSQL = {
    "foreign key to it": (
        "CREATE TABLE shop.c_{t} (a bigint, CONSTRAINT f_{t} FOREIGN KEY (a)"
        " REFERENCES shop.{t} (id))",
        "foreign key f_{t} of shop.c_{t}",
    ),
}


@pytest.mark.parametrize("what", sorted(POSTGRES.keys() | MYSQL.keys()))
def test_what_hangs_on_a_table_is_named(
    what: str, server: Server, writer: LedgeredWriter, rebuilt: Callable[[], Swap], sql: Any,
    rows_of: Any, table: Any, orders: Any, target: TargetName,
) -> None:  # fmt: skip
    """The old table stays whole, and is written as before; the new one can be removed."""
    kinds = POSTGRES if server.is_postgres else MYSQL
    if what not in kinds:
        pytest.skip("the server has no such thing, or it is of the name and not of the table")
    *statements, said = (text.format(t=target.table) for text in kinds[what])
    sql(*statements)
    before, swap = rows_of(), rebuilt()
    with pytest.raises(TargetRefused) as refused:
        writer.swap(swap)
    assert said in str(refused.value)
    assert str(target) in str(refused.value)
    assert rows_of() == before
    writer.remove(swap.new)
    assert writer.open(swap.new).version is None
    assert writer.write(table.batch(orders(("U", 1, "a", 10)), 9, after=1)).hwms == {LANE: 9}


def test_a_view_of_mysql_is_of_whichever_has_the_name(
    server: Server, writer: LedgeredWriter, rebuilt: Callable[[], Swap], sql: Any,
    target: TargetName,
) -> None:  # fmt: skip
    """It names its table."""
    if server.is_postgres:
        pytest.skip("there a view is of the table itself")
    sql(f"CREATE VIEW shop.v_{target.table} AS SELECT note FROM shop.{target.table}")
    swap = rebuilt()
    writer.swap(swap)
    found = sql(f"SELECT note FROM shop.v_{target.table} ORDER BY 1")
    assert found == [("b",), ("right",)]
    assert writer.open(swap.aside).version is None


def test_a_lock_leaves_both_as_they_were(
    server: Server, tables: JdbcTables, rebuilt: Callable[[], Swap], sql: Any, rows_of: Any,
    target: TargetName,
) -> None:  # fmt: skip
    """The exchange may be asked for again, or not at all: nothing of it goes on by itself."""
    swap, before = rebuilt(), rows_of()
    store = tables.store()
    impatient(server, store.session)
    exchanging = LedgeredWriter(store)
    sql("BEGIN", f"SELECT * FROM shop.{target.table}")
    with pytest.raises(SinkUnavailable):
        exchanging.swap(swap)
    sql("COMMIT")
    assert exchanging.open(swap.new).version is not None
    assert exchanging.open(target).version is not None
    assert rows_of() == before
    assert exchanging.swap(swap).hwms == {LANE: 8}
    assert rows_of() != before


def test_a_lock_ends_an_exchange_within_a_short_write_timeout(
    server: Server, rebuilt: Callable[[], Swap], sql: Any, target: TargetName
) -> None:
    """By the server, before the call is cut off: so it leaves no step under way, behind whose lock
    the next look would wait as well, and with it the pipeline."""
    swap, store = rebuilt(), JdbcStore(server.connect, "binlogd", timeout_s=3.0)
    exchanging = LedgeredWriter(store)
    sql("BEGIN", f"SELECT * FROM shop.{target.table}")
    with pytest.raises(SinkUnavailable, match=r"(?i)lock"):
        exchanging.swap(swap)
    assert exchanging.open(swap.new).version is not None
    assert exchanging.open(target).version is not None
    sql("COMMIT")
    assert exchanging.swap(swap).hwms == {LANE: 8}
    store.close()


def impatient(server: Server, session: Session) -> None:
    """It waits for a lock no longer than a second."""
    if server.is_postgres:
        session.run("SET lock_timeout = '1s'")
    else:
        session.run("SET SESSION lock_wait_timeout = 1, SESSION innodb_lock_wait_timeout = 1")


def test_a_table_that_is_kept_aside_by_a_refusal_is_named(
    server: Server, tables: JdbcTables, rebuilt: Callable[[], Swap], monkeypatch: Any,
    target: TargetName, capsys: Any,
) -> None:  # fmt: skip
    """Where the exchange can't be taken back, the removal of the old one fails alone."""
    if server.is_postgres:
        pytest.skip("the removal is of the same transaction")
    store, swap = tables.store(), rebuilt()

    def refuses(name: TargetName) -> None:
        raise TargetRefused(f"DROP is denied for {name}")

    monkeypatch.setattr(store, "remove", refuses)
    assert LedgeredWriter(store).swap(swap).hwms == {LANE: 8}
    assert "table_left" in capsys.readouterr().out
    assert store.look(swap.aside).marks.offsets == {LANE: 1}
