"""Others change the table, the ledger, or write the same target: nothing is lost or twice."""

from __future__ import annotations

import threading
from functools import partial

import pyarrow as pa
import pytest

from changes.model.errors import LostRace, TargetRefused
from changes.model.model import Column, Mode, TableSchema, TargetName
from offsets.fence import Fenced, Straggler
from sparkwriter.kit.marks_table.writer import LedgeredWriter
from sparkwriter.sql.base.tables import DbTable
from sparkwriter.sql.store import JdbcStore
from tests.sparkwriter.conftest import LANE, Staging
from tests.sparkwriter.sql.waiting import in_thread

LEDGER = "binlogd.__binlogd_targets"


def test_a_row_of_the_ledger_moves_under_a_writer(table, writer, sql, target) -> None:
    """By its version, whoever did it."""
    store = writer.tables
    seen = store.look(target)
    sql(f"UPDATE {LEDGER} SET version = version + 1 WHERE name = '{target.table}'")
    with pytest.raises(LostRace, match="meanwhile"):
        store.reset(seen, seen.marks)


CHANGES = {
    "forward": """marks = '{"shop:0": [2, "g"]}'""",
    "far forward": """marks = '{"shop:0": 99}'""",
    "back": """marks = '{"shop:0": 0}'""",
    "another group": """marks = '{"shop:0": [1, "other"]}'""",
    "no lane": "marks = '{}'",
    "no text of ours": "marks = 'x'",
    "another table": "made = NULL",
    "no table of ours": "made = 'x'",
    "of another target": "marks = (SELECT marks FROM {0}), checksum = (SELECT checksum FROM {0})",
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_ledger_row_that_somebody_changed(
    change, tables, table, writer, sql, orders, rebuilt, rows_of, target
) -> None:
    """Marks that were set forward would pass over changes, those set back bring them again: it is
    refused with the command that reads the table again, which works."""
    other = Staging(table.folder, target._replace(table=f"{target.table}o"), table.schema)
    writer.write(other.batch(orders(("U", 9, "o", 9)), 7))
    of_other = f"(SELECT * FROM {LEDGER} WHERE name = '{other.target.table}') o"
    sets = CHANGES[change].replace("{0}", of_other)
    sql(f"UPDATE {LEDGER} SET {sets} WHERE name = '{target.table}'")
    said = f"changed by somebody else .*`binlogd tables rebuild {target}`"
    with pytest.raises(TargetRefused, match=said):
        writer.write(table.batch(orders(("U", 1, "b", 1)), 2))
    with pytest.raises(TargetRefused, match=said):
        writer.open(target)
    state = tables.swaps().swap(rebuilt())
    assert state.hwms == {LANE: 8}
    assert rows_of() == [(1, "right", 1), (2, "b", 20)]
    assert writer.write(table.batch(orders(("D", 2, None, None)), 9, after=8)).hwms == {LANE: 9}


def test_a_ledger_row_that_is_right_as_somebody_made_it(table, writer, sql, orders, target) -> None:
    """Who says so takes its checksum away."""
    moved = """marks = '{"shop:0": 5}', checksum = NULL"""
    sql(f"UPDATE {LEDGER} SET {moved} WHERE name = '{target.table}'")
    assert writer.write(table.batch(orders(("U", 1, "b", 1)), 6, after=5)).hwms == {LANE: 6}
    sql(f"UPDATE {LEDGER} SET marks = '{{}}' WHERE name = '{target.table}'")
    with pytest.raises(TargetRefused, match="its checksum is of other marks"):
        writer.open(target)


def test_a_ledger_of_an_earlier_version_gets_its_checksums(
    server, table, tables, sql, orders, target
) -> None:
    """Whoever of two comes first; its rows count."""
    sql(f"ALTER TABLE {LEDGER} DROP COLUMN checksum")
    stores = [JdbcStore(server.connect, "binlogd") for _ in range(2)]
    for thread, raised in [in_thread(lambda store=store: store.look(target)) for store in stores]:
        thread.join()
        assert raised == []
    first = LedgeredWriter(stores[0])
    assert first.write(table.batch(orders(("U", 1, "b", 1)), 2)).hwms == {LANE: 2}
    ((checksum,),) = sql(f"SELECT checksum FROM {LEDGER} WHERE name = '{target.table}'")
    assert checksum is not None
    for store in stores:
        store.close()


def test_an_older_row_of_the_ledger_is_put_back(table, writer, sql, orders, target) -> None:
    """As a whole, from a copy: the mark went back, which no writer does."""
    copy = f"{target.table}_copy"
    sql(f"CREATE TABLE shop.{copy} AS SELECT * FROM {LEDGER} WHERE name = '{target.table}'")
    writer.write(table.batch(orders(("U", 1, "b", 1)), 2))
    sql(
        f"DELETE FROM {LEDGER} WHERE name = '{target.table}'",
        f"INSERT INTO {LEDGER} SELECT * FROM shop.{copy}",
    )
    with pytest.raises(Straggler, match="stands at 1, expected 2"):
        writer.write(table.batch(orders(("U", 1, "c", 1)), 3))
    assert writer.open(target).hwms == {LANE: 1}


def test_a_ledger_row_that_somebody_deleted(table, writer, sql, orders, target) -> None:
    """Then nothing is known of the marks, which the processor compares with what is recorded."""
    seen = writer.tables.look(target)
    sql(f"DELETE FROM binlogd.__binlogd_targets WHERE name = '{target.table}'")
    with pytest.raises(LostRace, match="it is none meanwhile"):
        writer.tables.reset(seen, seen.marks)
    assert writer.open(target).hwms == {}
    with pytest.raises(Fenced):
        writer.write(table.batch(orders(("U", 1, "b", 1)), 2))


def test_a_changelog_whose_ledger_row_is_gone(writer, sql, tmp_path, target) -> None:
    """Read again, each of its changes would be there twice: the only way is a new table."""
    staging = Staging(tmp_path, target, TableSchema((Column("note", pa.string()),), ()))
    writer.write(staging.batch(changelog_part(0), 0, mode=Mode.APPEND))
    sql(f"DELETE FROM {LEDGER} WHERE name = '{target.table}'")
    said = f"changelog with rows, and the ledger has no marks .*`binlogd tables rebuild {target}`"
    with pytest.raises(TargetRefused, match=said):
        writer.open(target)
    with pytest.raises(TargetRefused, match=said):
        writer.write(staging.batch(changelog_part(0), 0, mode=Mode.APPEND, after=-1))
    sql(f"DELETE FROM shop.{target.table}")
    writer.write(staging.batch(changelog_part(0), 0, mode=Mode.APPEND, after=-1))
    assert sql(f"SELECT note FROM shop.{target.table}") == [("0",)]


def changelog_part(offset: int) -> pa.Table:
    return pa.table(
        {
            "_op": ["I"],
            "_partition": pa.array([0], pa.int32()),
            "_offset": pa.array([offset], pa.int64()),
            "_index": pa.array([0], pa.int32()),
            "note": [str(offset)],
        }
    )


def test_two_daemons_on_one_target(server, tables, tmp_path, target) -> None:
    """Each batch lands once, whoever writes it: also of a list, where twice would be seen."""
    schema = TableSchema((Column("note", pa.string()),), ())
    staging = Staging(tmp_path, target, schema)

    batches = [staging.batch(changelog_part(at), at, mode=Mode.APPEND) for at in range(30)]

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


def test_a_table_that_another_daemon_makes_amid_the_look(
    server, tables, tmp_path, target, monkeypatch
) -> None:
    """The ledger was asked before it, the table behind it: it is no list without marks."""
    schema = TableSchema((Column("note", pa.string()),), ())
    staging = Staging(tmp_path, target, schema)
    first, second = (staging.batch(changelog_part(at), at, mode=Mode.APPEND) for at in range(2))
    here, other = (JdbcStore(server.connect, "binlogd") for _ in range(2))
    writer, describe = LedgeredWriter(here), here._describe

    def late(of: TargetName) -> DbTable | None:
        monkeypatch.undo()
        LedgeredWriter(other).write(first)
        return describe(of)

    monkeypatch.setattr(here, "_describe", late)
    writer.write(first)  # it has landed
    writer.write(second)
    assert sorted(tables.read(target)["_offset"].to_pylist()) == [0, 1]
    here.close()
    other.close()


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
