"""MySQL's statements commit by themselves: a process that ends between any two converges."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import pyarrow as pa
import pytest

from actors.contract.writes import Swap
from changes.model.errors import SinkUnavailable, TargetRefused
from changes.model.model import (
    AddColumn,
    ChangeColumn,
    Column,
    DropColumn,
    DropTable,
    RenameColumn,
    TargetName,
    TruncateTable,
)
from databases.base.errors import Cause, database_error
from sparkwriter.kit.marks_table.writer import LedgeredWriter
from sparkwriter.kit.store import Absent
from sparkwriter.sql.base.session import Session
from tests.sparkwriter.conftest import LANE
from tests.sparkwriter.databases import JdbcTables, Server

OWN_COMMENTS = (
    "mine: binlog", "", "see binlogd:docs", "binlogd: a copy ",
    "made by binlogd:0123456789ab.1 once", "binlogd:", "mine\nbinlogd:x",
)  # fmt: skip


class Mortal:
    """A session whose process ends at its n-th statement that changes something."""

    def __init__(self, session: Session, left: list[int], done: bool) -> None:
        self._session, self._left, self._done = session, left, done

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def run(self, sql: str, values: Any = ()) -> int:
        return self._count(lambda: self._session.run(sql, values))

    def begin(self) -> None:
        self._count(self._session.begin)

    def commit(self) -> None:
        self._count(self._session.commit)

    def _count(self, act: Any) -> Any:
        self._left[0] -= 1
        if self._left[0] < 0 and not self._done:
            self._end()
        answer = act()
        if self._left[0] < 0:
            self._end()
        return answer

    def _end(self) -> None:
        self._session.close()
        raise database_error(Cause.AWAY, "the process has ended")


def mortal_sessions(server: Server, left: list[int], done: bool) -> Callable[[], Session]:
    return lambda: cast(Session, Mortal(server.connect(), left, done))


MOST = 60
"""More statements than any of the cases has."""


@pytest.fixture
def converges(server, tables, request):
    """Do it with an end at each statement; then once more, as the processor does."""

    def run(prepare: Any, act: Any, check: Any) -> None:
        for done in (False, True):
            for at in range(MOST):
                prepare()
                left = [at]
                mortal = JdbcTables(server, mortal_sessions(server, left, done))
                try:
                    act(LedgeredWriter(mortal.store()))
                except SinkUnavailable:
                    act(LedgeredWriter(tables.store()))
                check()
                mortal.close()
                tables.close()
                if left[0] >= 0:
                    break
            else:
                raise AssertionError("it outlived no statement")

    return run


STATEMENTS = {
    "columns": [
        RenameColumn("note", "n"),
        RenameColumn("n", "note"),
        AddColumn(Column("m", pa.string()), "new"),
        ChangeColumn("id", Column("oid", pa.int64())),
    ],
    "emptied and altered": [TruncateTable(), DropColumn("n"), AddColumn(Column("n", pa.int64()))],
    "emptied": [TruncateTable()],
    "dropped": [DropTable()],
}


OFTEN = ("columns",)


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=() if n in OFTEN else pytest.mark.long) for n in STATEMENTS],
)
def test_statements(name, converges, tables, staging, orders, target) -> None:
    """The rows and the marks are there once, whenever it ended."""
    current = staging

    def prepare() -> None:
        nonlocal current
        current = replace_target(staging, target)
        writer = LedgeredWriter(tables.store())
        writer.write(current.batch(orders(("U", 1, "a", 10), ("U", 2, "b", 20)), 1, after=-1))

    def act(writer: LedgeredWriter) -> None:
        writer.write(current.batch(None, 2, after=1, ddl=[STATEMENTS[name]]))

    def check() -> None:
        state = LedgeredWriter(tables.store()).open(current.target)
        assert state.hwms == {LANE: 2}
        if name == "dropped":
            assert state.schema is None
            return
        rows = tables.read(current.target).to_pylist()
        if name == "columns":
            wanted = [
                {"oid": 1, "n": "a", "note": 10, "m": "new"},
                {"oid": 2, "n": "b", "note": 20, "m": "new"},
            ]
            assert sorted(rows, key=lambda row: row["oid"]) == wanted
        else:
            assert rows == []

    converges(prepare, act, check)


def replace_target(staging: Any, target: TargetName) -> Any:
    """The next table of the test's."""
    number = getattr(staging, "number", 0) + 1
    staging.number = number
    staging.target = target._replace(table=f"{target.table}_{number}")
    staging.after = -1
    return staging


@pytest.mark.long
def test_a_table_that_is_made(converges, tables, staging, orders, target) -> None:
    """And its first rows."""
    current = staging

    def prepare() -> None:
        replace_target(staging, target)

    def act(writer: LedgeredWriter) -> None:
        writer.write(current.batch(orders(("U", 1, "a", 10)), 1, after=-1))

    def check() -> None:
        assert tables.read(current.target).to_pylist() == [{"id": 1, "note": "a", "n": 10}]

    converges(prepare, act, check)


@pytest.mark.long
@pytest.mark.parametrize("keep_old", [False, True])
def test_tables_that_change_places(converges, tables, staging, orders, target, keep_old) -> None:
    """The old one goes, or aside."""
    swap = Swap(target, target, target, {LANE: 9}, keep_old)

    def prepare() -> None:
        nonlocal swap
        old = replace_target(staging, target).target
        new = old._replace(table=f"{old.table}__rebuild")
        swap = replace(swap, old=old, new=new, aside=old._replace(table=f"{old.table}__before"))
        writer = LedgeredWriter(tables.store())
        writer.write(staging.batch(orders(("U", 1, "wrong", 0)), 5))
        staging.target = new
        writer.write(staging.batch(orders(("U", 1, "a", 1)), 8, after=-1))

    def act(writer: LedgeredWriter) -> None:
        writer.swap(swap)

    def check() -> None:
        assert tables.read(swap.old)["note"].to_pylist() == ["a"]
        store = tables.store()
        assert store.look(swap.old).marks.offsets == {LANE: 8}
        assert isinstance(store.look(swap.new), Absent)
        if keep_old:
            assert tables.read(swap.aside)["note"].to_pylist() == ["wrong"]
        else:
            assert isinstance(store.look(swap.aside), Absent)

    converges(prepare, act, check)


def test_a_statement_that_is_refused_leaves_nothing_open(
    server, tables, writer, staging, orders, sql, target
) -> None:
    """The table goes on as it was."""
    writer.write(staging.batch(orders(("U", 1, "a", 1)), 1))
    wide = [AddColumn(Column("x" * 100, pa.int64()))]
    with pytest.raises(TargetRefused):
        writer.write(staging.batch(None, 2, ddl=[wide], after=1))
    many = [AddColumn(Column(f"c{n}", pa.int64())) for n in range(2000)]
    with pytest.raises(TargetRefused, match=r"(?i)columns"):
        writer.write(staging.batch(None, 2, ddl=[many], after=1))
    writer.write(staging.batch(orders(("U", 2, "b", 2)), 2, after=1))
    assert len(tables.read(target)) == 2
    assert sql("SELECT 1 FROM binlogd.__binlogd_targets WHERE step IS NOT NULL") == []


@pytest.mark.parametrize("own", OWN_COMMENTS)
def test_a_comment_of_the_users_stays(server, sql, writer, staging, orders, target, own) -> None:
    """The stamp is behind it, whatever it says of binlogd."""
    if server.is_postgres:
        return
    sql(
        f"CREATE TABLE shop.{target.table} (id bigint PRIMARY KEY, note text, n int)"
        f" COMMENT '{own}'"
    )
    writer.write(staging.batch(orders(("U", 1, "a", 1)), 1))
    for at in (2, 3):
        writer.write(staging.batch(None, at, ddl=[[AddColumn(Column(f"m{at}", pa.int32()))]]))
    ((comment,),) = sql(
        f"SELECT TABLE_COMMENT FROM information_schema.TABLES WHERE TABLE_NAME = '{target.table}'"
    )
    kept, _, stamp = comment.rpartition("binlogd:")
    assert kept == (f"{own} " if own else "")
    assert re.fullmatch(r"[0-9a-f]{12}\.[0-9]+", stamp)
