"""Several targets in one transaction: readers see all of it or nothing, whatever goes wrong."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from actors.contract.addresses import Address
from actors.contract.messages import NotTogether, WriteBatch
from actors.contract.ports import OneFailed
from actors.contract.writes import StagedBatch
from actors.runtime.in_sink import published_together
from changes.model.errors import LostRace, SinkAway, SinkUnavailable, TargetRefused, WaitsForRows
from changes.model.model import OP, Column, TableSchema, TargetName
from databases.base.errors import Cause
from offsets.fence import Fenced
from sparkwriter.kit.marks_table.writer import LedgeredWriter
from sparkwriter.sql.base.session import Session
from sparkwriter.sql.store import JdbcStore
from tests.sparkwriter.conftest import Staging
from tests.sparkwriter.databases import JdbcTables, Server
from tests.sparkwriter.sql.test_faults import Losing
from tests.sparkwriter.sql.waiting import in_thread


class Several:
    """Tables of a test, with batches for all of them at once."""

    def __init__(self, folder: Path, target: TargetName, orders: Callable[..., pa.Table]) -> None:
        columns = (Column("id", pa.int64()), Column("note", pa.string()), Column("n", pa.int32()))
        self.names = [target._replace(table=f"{target.table}_{n}") for n in range(3)]
        self._orders = orders
        self._staging = []
        for name in self.names:
            (where := folder / name.table).mkdir()
            self._staging.append(Staging(where, name, TableSchema(columns, ("id",))))

    def batches(self, *rows: tuple[Any, ...], through: int) -> list[StagedBatch]:
        return [each.batch(self._orders(*rows), through) for each in self._staging]


@pytest.fixture
def several(tmp_path, target, orders) -> Several:
    return Several(tmp_path, target, orders)


@pytest.fixture
def shown(tables: JdbcTables, several: Several) -> Callable[[], list[Any]]:
    """What each table shows."""

    def read() -> list[Any]:
        found = (tables.read(name).to_pylist() for name in several.names)
        return [sorted(tuple(row.values()) for row in rows) for rows in found]

    return read


def states(writer: LedgeredWriter, several: Several) -> list[Any]:
    return [writer.open(name).hwms for name in several.names]


def test_all_of_them_show_it_and_each_has_its_marks(writer, several, shown) -> None:
    """Tables are made on the way; a second write finds them; a third is the second one again."""
    made = writer.write_together(several.batches(("U", 1, "a", 1), ("U", 2, "b", 2), through=1))
    assert shown() == [[(1, "a", 1), (2, "b", 2)]] * 3
    assert [state.covered for state in made] == [False] * 3
    batches = several.batches(("U", 1, "z", 9), ("D", 2, None, None), through=2)
    again = writer.write_together(batches[::-1])
    assert shown() == [[(1, "z", 9)]] * 3
    assert [state.hwms for state in again] == states(writer, several)
    versions = [writer.open(name).version for name in several.names]
    assert [state.version for state in again] == versions[::-1]
    assert all(state.covered for state in writer.write_together(batches))
    assert shown() == [[(1, "z", 9)]] * 3


def test_one_that_is_refused_takes_the_others_back(writer, several, shown, sql) -> None:
    """It is named; without it the others are written, and each is written once."""
    writer.write_together(several.batches(("U", 1, "a", 1), through=1))
    bad = several.names[1]
    sql(f"ALTER TABLE shop.{bad.table} ADD CONSTRAINT few CHECK (n < 5)")
    before = shown(), states(writer, several)
    batches = several.batches(("U", 1, "b", 7), through=2)
    with pytest.raises(OneFailed) as failed:
        writer.write_together(batches)
    assert failed.value.target == bad
    assert isinstance(failed.value.__cause__, TargetRefused)
    assert (shown(), states(writer, several)) == before
    writer.write_together([batches[0], batches[2]])
    assert shown() == [[(1, "b", 7)], [(1, "a", 1)], [(1, "b", 7)]]


def test_a_lost_answer_has_written_all_of_it(server: Server, several, shown) -> None:
    """Or none: nobody knows, and the next try tells."""
    lives = iter([lambda: Losing(server.connect())])
    first = LedgeredWriter(JdbcStore(server.connect, "binlogd"))
    first.write_together(several.batches(("U", 1, "a", 1), through=1))
    store = JdbcStore(lambda: next(lives, server.connect)(), "binlogd")
    batches = several.batches(("U", 1, "b", 2), through=2)
    with pytest.raises(OneFailed) as failed:
        LedgeredWriter(store).write_together(batches)
    assert (failed.value.target, type(failed.value.__cause__)) == (None, SinkUnavailable)
    assert all(state.covered for state in LedgeredWriter(store).write_together(batches))
    assert shown() == [[(1, "b", 2)]] * 3
    store.close()


def test_one_that_another_writer_moves_meanwhile(server: Server, writer, several, shown) -> None:
    """The marks fence each of them: nothing is written of any."""
    writer.write_together(several.batches(("U", 1, "a", 1), through=1))
    ahead = several.batches(("U", 1, "b", 2), through=2)
    other = LedgeredWriter(JdbcStore(server.connect, "binlogd"))
    other.write(ahead[1])
    third = several.batches(("U", 1, "c", 3), through=3)
    wrong = [third[0], ahead[1], third[2]]
    with pytest.raises(OneFailed) as failed:
        writer.write_together(wrong)
    assert isinstance(failed.value.__cause__, Fenced)
    assert shown() == [[(1, "a", 1)], [(1, "b", 2)], [(1, "a", 1)]]
    other.tables.close()


def test_a_reader_sees_all_of_it_at_once(server: Server, writer, several) -> None:
    """In one snapshot: never one table's rows without the others'."""
    writer.write_together(several.batches(("U", 1, "a", 0), through=0))
    seen: list[set[Any]] = []
    stop, session = threading.Event(), server.connect()
    mine = "SESSION CHARACTERISTICS AS" if "postgresql" in server.url else "SESSION"
    session.run(f"SET {mine} TRANSACTION ISOLATION LEVEL REPEATABLE READ")

    def look() -> None:
        while not stop.is_set():
            session.begin()
            seen.append({session.rows(f"SELECT n FROM shop.{n.table}")[0] for n in several.names})
            session.commit()

    thread, raised = in_thread(look)
    for through in range(1, 30):
        writer.write_together(several.batches(("U", 1, "a", through), through=through))
    stop.set()
    thread.join(30)
    session.close()
    assert raised == []
    assert all(len(values) == 1 for values in seen)
    assert len({min(values) for values in seen}) > 3


def test_a_statement_that_would_end_the_transaction_is_no_part_of_it(
    writer, several, shown
) -> None:
    """Others changed the table between the look and the transaction: it is tried again."""
    writer.write_together(several.batches(("U", 1, "a", 1), through=1))
    batches = several.batches(("U", 1, "b", 2), through=2)

    def drop_amid() -> None:
        with writer.tables.together():
            writer.write(batches[0])
            seen = writer.tables.look(several.names[1])
            writer.tables.drop(seen, seen.marks)

    with pytest.raises(LostRace):
        drop_amid()
    assert shown() == [[(1, "a", 1)]] * 3
    writer.write_together(batches)
    assert shown() == [[(1, "b", 2)]] * 3


def test_a_lock_is_waited_for_no_longer_than_the_others_can(
    server: Server, writer, several, shown
) -> None:
    """Who waits for it is named. A write by itself waits as long as ever."""
    writer.write_together(several.batches(("U", 1, "a", 1), through=1))
    batches, locked = several.batches(("U", 1, "b", 2), through=2), several.names[1]
    session = server.connect()
    session.begin()
    session.run(f"UPDATE shop.{locked.table} SET n = 7 WHERE id = 1")
    with pytest.raises(OneFailed) as failed:
        writer.write_together(batches, 1.0)
    assert failed.value.target == locked
    assert type(failed.value.__cause__) is SinkUnavailable
    session.close()
    asked = "SELECT @@innodb_lock_wait_timeout"
    if server.is_postgres:
        asked = "SELECT setting::int / 1000 FROM pg_settings WHERE name = 'lock_timeout'"
    writer.write_together(batches, 1.0)
    assert shown() == [[(1, "b", 2)]] * 3
    assert writer.tables.session.rows(asked) == [(30,)]


def test_a_server_that_takes_no_connection_is_nobodys_fault(server: Server, several) -> None:
    """None of the targets could be written: so they say."""

    def refuse() -> Session:
        raise server.connect().error(Cause.AWAY, "no connection")

    store = JdbcStore(refuse, "binlogd")
    with pytest.raises(OneFailed) as failed:
        LedgeredWriter(store).write_together(several.batches(("U", 1, "a", 1), through=1))
    assert isinstance(failed.value.__cause__, SinkAway)


# Tables of which one's rows point to the other's.

DEFERRABLE = " DEFERRABLE INITIALLY IMMEDIATE"


class Family:
    """Parents, and children that point to them; by name one or the other comes first."""

    def __init__(self, folder: Path, target: TargetName, names: tuple[str, str]) -> None:
        self.parents, self.children = [f"{target.table}_{name}" for name in names]
        columns = (Column("id", pa.int64()), Column("parent", pa.int64()))
        self._staging = []
        for name in (self.parents, self.children):
            (where := folder / name).mkdir()
            schema = TableSchema(columns, ("id",))
            self._staging.append(Staging(where, target._replace(table=name), schema))

    def make(self, sql: Callable[..., Any], more: str = "") -> None:
        sql(
            f"CREATE TABLE shop.{self.parents} (id bigint PRIMARY KEY, parent bigint)",
            f"CREATE TABLE shop.{self.children} (id bigint PRIMARY KEY, parent bigint,"
            f" FOREIGN KEY (parent) REFERENCES shop.{self.parents} (id){more})",
        )

    def batches(self, through: int, *changes: tuple[str, int, int | None]) -> list[StagedBatch]:
        """The last changes are the children's, as many as the parents'."""
        half = len(changes) // 2
        parts = zip(self._staging, (changes[:half], changes[half:]), strict=True)
        return [each.batch(_rows(part), through) for each, part in parts]

    def shown(self, sql: Callable[..., Any]) -> list[Any]:
        names = self.parents, self.children
        return [sql(f"SELECT id, parent FROM shop.{name} ORDER BY id") for name in names]


def _rows(changes: tuple[tuple[str, int, int | None], ...]) -> pa.Table:
    ops, ids, parents = zip(*changes, strict=True)
    return pa.table(
        {OP: ops, "id": pa.array(ids, pa.int64()), "parent": pa.array(parents, pa.int64())}
    )


@pytest.fixture(params=[("a", "b"), ("b", "a")], ids=["parents-first", "children-first"])
def family(tmp_path: Path, target: TargetName, request: pytest.FixtureRequest) -> Family:
    return Family(tmp_path, target, request.param)


def test_rows_that_point_to_each_other_come_and_go_together(writer, sql, family: Family) -> None:
    """In whatever order the tables' names are: where one must wait, the others go first."""
    family.make(sql)
    writer.write_together(family.batches(1, ("U", 1, None), ("U", 5, 1)))
    assert family.shown(sql) == [[(1, None)], [(5, 1)]]
    writer.write_together(family.batches(2, ("D", 1, None), ("D", 5, None)))
    assert family.shown(sql) == [[], []]


def test_keys_that_can_wait_are_checked_for_all_of_them(
    server: Server, writer, sql, family: Family
) -> None:
    """So one transaction may bring new ones and end old ones."""
    if not server.is_postgres:
        return
    family.make(sql, DEFERRABLE)
    writer.write_together(family.batches(1, ("U", 1, None), ("U", 5, 1)))
    changes = ("D", 1, None), ("U", 2, None), ("D", 5, None), ("U", 6, 2)
    writer.write_together(family.batches(2, *changes))
    assert family.shown(sql) == [[(2, None)], [(6, 2)]]


def test_a_row_that_no_order_helps_is_named(server: Server, writer, sql, family: Family) -> None:
    """Its parent is not there: readers see nothing of the others either."""
    family.make(sql)
    with pytest.raises(OneFailed) as failed:
        writer.write_together(family.batches(1, ("U", 1, None), ("U", 5, 7)))
    assert isinstance(failed.value.__cause__, WaitsForRows)
    assert failed.value.target
    assert failed.value.target.table == family.children
    assert family.shown(sql) == [[], []]


def test_what_the_commit_refuses_is_tried_one_by_one(
    server: Server, writer, sql, family: Family
) -> None:
    """It is not known whose rows wait: no one is blamed for another's."""
    if not server.is_postgres:
        return
    family.make(sql, DEFERRABLE)
    batches = family.batches(1, ("U", 1, None), ("U", 5, 7))
    writes = [WriteBatch(batch, {}, {}, Address("p", "processor"), None) for batch in batches]
    said = published_together(writer, writes, 5.0)
    assert isinstance(said, NotTogether)
    assert said.failed is None
