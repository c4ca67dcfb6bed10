"""Others change the table, the ledger, or write the same target: nothing is lost or twice."""

from __future__ import annotations

import threading
from functools import partial

import pyarrow as pa
import pytest

from actors.contract.ports import LostRace, TargetRefused
from changes.model import Column, Mode, TableSchema, TargetName
from offsets.fence import Fenced, Straggler
from sparkwriter.jdbc.store import JdbcStore
from sparkwriter.ledgered.store import LedgeredWriter
from tests.sparkwriter.conftest import LANE, Staging
from tests.sparkwriter.jdbc.waiting import in_thread


def test_a_ledger_row_that_somebody_changed(table, writer, sql, orders, target) -> None:
    """What it says counts, if it can be read; the marks tell whether anything is missing."""
    ledger, where = "binlogd.__binlogd_targets", f"WHERE name = '{target.table}'"
    store = writer._tables
    seen = store.look(target)
    sql(f"UPDATE {ledger} SET version = version + 1 {where}")
    with pytest.raises(LostRace, match="meanwhile"):
        store.reset(seen, seen.marks)
    lower = f"""UPDATE {ledger} SET marks = '{{"shop:0": 0}}' {where}"""
    sql(lower)
    with pytest.raises(Straggler, match="stands at 0, expected 1"):
        writer.write(table.batch(orders(("U", 1, "b", 1)), 2))
    assert writer.open(target).hwms == {LANE: 0}
    sql(f"UPDATE {ledger} SET marks = 'x' {where}")
    with pytest.raises(TargetRefused, match="was changed by somebody else and can't be read"):
        writer.open(target)
    sql(f"UPDATE {ledger} SET marks = '{{}}', made = 'x' {where}")
    with pytest.raises(TargetRefused, match="can't be read"):
        writer.open(target)


def test_a_ledger_row_that_somebody_deleted(table, writer, sql, orders, target) -> None:
    """Then nothing is known of the marks, which the processor compares with what is recorded."""
    seen = writer._tables.look(target)
    sql(f"DELETE FROM binlogd.__binlogd_targets WHERE name = '{target.table}'")
    with pytest.raises(LostRace, match="it is none meanwhile"):
        writer._tables.reset(seen, seen.marks)
    assert writer.open(target).hwms == {}
    with pytest.raises(Fenced):
        writer.write(table.batch(orders(("U", 1, "b", 1)), 2))


def test_a_table_that_somebody_dropped(table, writer, sql, orders, target) -> None:
    """The marks have gone with it; made again it is a new one."""
    sql(f"DROP TABLE shop.{target.table}")
    assert writer.open(target).hwms == {}
    with pytest.raises(Fenced):
        writer.write(table.batch(orders(("U", 1, "b", 1)), 2))
    assert writer.write(table.batch(orders(("U", 1, "b", 1)), 2, after=-1)).hwms == {LANE: 2}


def test_two_daemons_on_one_target(server, tables, tmp_path, target) -> None:
    """Each batch lands once, whoever writes it: also of a list, where twice would be seen."""
    schema = TableSchema((Column("note", pa.string()),), ())
    staging = Staging(tmp_path, target, schema)

    def part(offset: int) -> pa.Table:
        return pa.table(
            {
                "_op": ["I"],
                "_partition": pa.array([0], pa.int32()),
                "_offset": pa.array([offset], pa.int64()),
                "_index": pa.array([0], pa.int32()),
                "note": [str(offset)],
            }
        )

    batches = [staging.batch(part(at), at, mode=Mode.APPEND) for at in range(30)]

    def daemon() -> None:
        store = JdbcStore(server.connect, "binlogd")
        writer = LedgeredWriter(store)
        for batch in batches:
            while True:
                try:
                    writer.write(batch)
                    break
                except Fenced:
                    break  # the other one is ahead
                except LostRace:
                    continue
        store.close()

    threads = [in_thread(daemon) for _ in range(2)]
    for thread, raised in threads:
        thread.join()
        assert raised == []
    assert sorted(tables.read(target)["_offset"].to_pylist()) == list(range(30))


def test_first_tables_of_a_schema_that_come_at_once(server, tmp_path, staging, orders) -> None:
    """Whoever makes schema and ledger: all tables are there."""
    name = f"new_{staging.target.table}"
    gate = threading.Barrier(4)

    def first(number: int) -> None:
        own = Staging(tmp_path, TargetName("db", name, f"t{number}"), staging.schema)
        batch = own.batch(orders(("U", 1, "a", 1)), 1)
        store = JdbcStore(server.connect, f"{name}_ledger")
        assert store.session
        gate.wait()
        assert LedgeredWriter(store).write(batch).hwms == {LANE: 1}
        store.close()

    for thread, raised in [in_thread(partial(first, number)) for number in range(4)]:
        thread.join()
        assert raised == []
