"""Two sinks with ledgers of their own never share a table: who comes second is refused by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from actors.contract.writes import Swap
from changes.model.errors import SinkUnavailable, TargetRefused
from sparkwriter.kit.marks_table.writer import LedgeredWriter
from sparkwriter.sql.store import JdbcStore
from sparkwriter.sql.try_out import try_out
from tests.sparkwriter.conftest import LANE, Staging

Make = Callable[[], LedgeredWriter]


@pytest.fixture
def stranger(server, sql) -> Iterator[Make]:
    """Writers of another sink, whose ledger_schema is ``elsewhere``."""
    stores: list[JdbcStore] = []

    def make() -> LedgeredWriter:
        stores.append(JdbcStore(server.connect, "elsewhere"))
        return LedgeredWriter(stores[-1])

    yield make
    for store in stores:
        store.close()
    sql(f"DROP SCHEMA IF EXISTS elsewhere{' CASCADE' if server.is_postgres else ''}")


def test_the_second_ledger_of_a_table_is_refused(table, writer, stranger: Make, orders) -> None:
    """At its first write; the first one goes on, and so does a table that it does not have."""
    late = stranger()
    batch = table.batch(orders(("U", 1, "stranger", 1)), 1)
    for one in (late, stranger()):
        with pytest.raises(TargetRefused, match='Set ledger_schema = "binlogd"'):
            one.write(batch)
    assert writer.write(table.batch(orders(("U", 3, "c", 1)), 2)).hwms == {LANE: 2}


def test_two_that_share_a_table_already(table, writer, stranger: Make, orders, sql) -> None:
    """As versions before did not see: the second stops, until the first one's row is deleted."""
    (row,) = sql("SELECT COUNT(*) FROM binlogd.__binlogd_targets")
    assert row[0]
    late = stranger()
    late.open(table.target._replace(table="none"))
    columns = "namespace, name, version, marks, freed, made, step, checksum"
    mine = f"namespace = 'shop' AND name = '{table.target.table}'"
    sql(
        f"INSERT INTO elsewhere.__binlogd_targets ({columns}) SELECT namespace, name, version + 9,"
        f" marks, freed, made, step, checksum FROM binlogd.__binlogd_targets WHERE {mine}"
    )
    batch = table.batch(orders(("U", 1, "stranger", 1)), 2)
    with pytest.raises(TargetRefused, match="is kept by the ledger binlogd as well"):
        stranger().write(batch)
    sql(f"DELETE FROM binlogd.__binlogd_targets WHERE {mine}")
    assert stranger().write(batch).hwms == {LANE: 2}


def test_a_ledger_that_is_locked_is_waited_for(table, stranger: Make, orders, server, sql) -> None:
    """What it keeps is not known then: nothing is written, and later it is looked at again."""
    stranger().open(table.target._replace(table="none"))
    late = JdbcStore(server.connect, "elsewhere", timeout_s=3.0)
    if server.is_postgres:
        sql("BEGIN", "LOCK TABLE binlogd.__binlogd_targets IN ACCESS EXCLUSIVE MODE")
    else:
        sql("LOCK TABLES binlogd.__binlogd_targets WRITE")
    with pytest.raises(SinkUnavailable, match=r"(?i)lock"):
        LedgeredWriter(late).write(table.batch(orders(("U", 1, "stranger", 1)), 1))
    sql("COMMIT" if server.is_postgres else "UNLOCK TABLES")
    with pytest.raises(TargetRefused, match="is kept by the ledger binlogd as well"):
        LedgeredWriter(late).write(table.batch(orders(("U", 1, "stranger", 1)), 1))
    late.close()


def test_the_second_ledger_exchanges_no_table(
    table, writer, stranger: Make, orders, server, rebuilt, rows_of
) -> None:
    """Its loads and rebuilds are refused by their plan, and at their end; the first one's are not.
    ``check-config --connect`` names the ledger, too."""
    target, before, late = table.target, rows_of(), stranger()
    new, aside = (target._replace(table=f"{target.table}__{end}") for end in ("late", "aside"))
    by_plan = JdbcStore(server.connect, "elsewhere")
    said = "is kept by the ledger binlogd as well"
    (line,) = by_plan.in_the_way(target, new, aside)
    by_plan.close()
    assert said in line
    late.write(Staging(table.folder, new, table.schema).batch(orders(("U", 1, "stranger", 1)), 8))
    with pytest.raises(TargetRefused, match=said) as refused:
        late.swap(Swap(target, new, aside, {LANE: 9}))
    assert str(target) in str(refused.value)
    assert rows_of() == before
    late.remove(new)
    assert any(said in line for line in try_out(server.connect, "elsewhere", [target]))
    assert not any(said in line for line in try_out(server.connect, "binlogd", [target]))
    by_plan = JdbcStore(server.connect, "binlogd")
    assert by_plan.in_the_way(target, new, aside) == []
    by_plan.close()
    assert writer.swap(rebuilt()).hwms == {LANE: 8}
    assert rows_of() != before
