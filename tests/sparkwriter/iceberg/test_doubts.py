"""The mark ``rows_may_differ``: it comes in the commit of what it names, and goes with the rows."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pyarrow as pa
import pytest

from actors.contract.writes import Doubt, Swap
from changes.model.model import (
    ChangeColumn,
    Column,
    DropTable,
    TableSchema,
    TargetName,
    TruncateTable,
)
from sparkwriter.iceberg import ddl as iceberg_ddl
from sparkwriter.iceberg.section import Write
from sparkwriter.iceberg.sink import IcebergWriter
from tests.sparkwriter.conftest import LANE, Staging

NARROWED = Doubt("sink.t: n from bigint to int at shop:0 offset 2")


@pytest.fixture
def table(writer, staging: Staging, orders) -> Staging:
    """A table with two rows, one note being null; its mark at 1."""
    writer.write(staging.batch(orders(("U", 1, "a", 10), ("U", 2, None, 20)), 1))
    return staging


def marked(writer: Any, table: Staging, *, through: int = 2, **kinds: Any) -> str | None:
    """The mark after a statement that brings doubts, the same for who opens the table next."""
    state = writer.write(table.batch(None, through, doubts=[NARROWED], **kinds))
    opened = writer.open(table.target)
    assert opened.rows_may_differ == state.rows_may_differ
    assert opened.hwms == {LANE: through}
    return state.rows_may_differ


def test_a_statement_marks_its_table(writer, table: Staging, orders) -> None:
    """With a change of the columns, and without any; the rows that follow leave it."""
    assert writer.open(table.target).rows_may_differ is None
    assert marked(writer, table, ddl=[[ChangeColumn("n", Column("n", pa.int64()))]])
    assert marked(writer, table, through=3) == NARROWED.what
    state = writer.write(table.batch(orders(("U", 3, "c", 30)), 4))
    assert state.rows_may_differ == NARROWED.what


@pytest.mark.parametrize("write", Write, ids=lambda way: way.value)
def test_rows_mark_their_table(writer, table: Staging, orders, write: Write) -> None:
    """What rows tell of their columns is in the commit that brings them."""
    batch = table.batch(orders(("U", 1, "x", 1), ("U", 4, "d", 40)), 2, doubts=[NARROWED])
    assert writer.write(batch).rows_may_differ == NARROWED.what
    assert writer.open(table.target).rows_may_differ == NARROWED.what


def test_a_crash_before_the_commit_leaves_no_mark(writer, table: Staging, monkeypatch) -> None:
    """Statement, mark and offset are there together or not at all."""

    class Crash(Exception):
        """The process is gone."""

    def crash(*_: object, **__: object) -> None:
        raise Crash

    batch = table.batch(None, 2, doubts=[NARROWED])
    with monkeypatch.context() as patch:
        patch.setattr(iceberg_ddl, "publish_branch", crash)
        with suppress(Crash):
            writer.write(batch)
    state = writer.open(table.target)
    assert (state.hwms, state.rows_may_differ) == ({LANE: 1}, None)
    assert writer.write(batch).rows_may_differ == NARROWED.what
    # A lost reply: it is covered, and shows the mark.
    again = writer.write(batch)
    assert (again.covered, again.rows_may_differ) == (True, NARROWED.what)


@pytest.mark.parametrize("there", [True, False], ids=["a table with rows", "none yet"])
def test_a_crash_behind_new_columns_leaves_the_mark(
    writer, staging: Staging, orders, monkeypatch, there: bool
) -> None:
    """The columns stand when it is written again, so that nobody could tell any more that they
    are new."""
    if there:
        writer.write(staging.batch(orders(("U", 1, "a", 10)), 1))

    class Crash(Exception):
        """The process is gone."""

    def crash(*_: object, **__: object) -> None:
        raise Crash

    rows = orders(("U", 2, "b", 20)).append_column("more", pa.array(["x"]))
    schema = TableSchema(
        (*staging.schema.columns, Column("more", pa.string())), staging.schema.keys
    )
    before = staging.after
    new = Doubt("sink.t: column more is new up to shop:0 offset 2", amid=True)
    with monkeypatch.context() as patch:
        patch.setattr(IcebergWriter, "_publish", crash)
        with suppress(Crash):
            writer.write(staging.batch(rows, 2, schema=schema, doubts=[new]))
    state = writer.open(staging.target)
    assert "more" in [column.name for column in state.schema.columns]
    assert state.rows_may_differ == new.what
    again = staging.batch(rows, 2, after=before)
    assert writer.write(again).rows_may_differ == new.what


def test_without_rows_there_is_nothing_to_differ(writer, table: Staging, orders) -> None:
    """TRUNCATE takes the mark away, and a statement on the empty table sets none."""
    assert marked(writer, table)
    state = writer.write(table.batch(None, 3, ddl=[[TruncateTable()]]))
    assert state.rows_may_differ is None
    assert marked(writer, table, through=4) is None
    writer.write(table.batch(orders(("U", 1, "a", 1)), 5))
    assert marked(writer, table, through=6) == NARROWED.what


def test_rows_that_come_with_the_doubt_may_differ(writer, staging: Staging, orders) -> None:
    """The first batch of a table, or of one that was emptied: it has rows of before and after."""
    amid = Doubt("sink.t: column n is new up to shop:0 offset 1", amid=True)
    rows = orders(("U", 1, "a", 10))
    assert writer.write(staging.batch(rows, 1, doubts=[amid])).rows_may_differ == amid.what
    emptied = writer.write(staging.batch(None, 2, ddl=[[TruncateTable()]]))
    assert emptied.rows_may_differ is None
    assert writer.write(staging.batch(rows, 3, doubts=[NARROWED])).rows_may_differ is None
    writer.write(staging.batch(None, 4, ddl=[[TruncateTable()]]))
    assert writer.write(staging.batch(rows, 5, doubts=[amid])).rows_may_differ == amid.what


def test_a_table_made_again_has_none(writer, table: Staging, orders) -> None:
    """The kept one, under its other name, has its mark still."""
    assert marked(writer, table)
    writer.write(table.batch(None, 3, ddl=[[DropTable(keep=True)]]))
    state = writer.write(table.batch(orders(("U", 7, "g", 70)), 4))
    assert state.rows_may_differ is None
    aside = table.target._replace(table=f"{table.target.table}__dropped_3")
    assert writer.open(aside).rows_may_differ == NARROWED.what


def test_a_null_that_might_have_been_replaced(writer, table: Staging) -> None:
    """NOT NULL only changes rows that held a null: the files' own counts tell whether any may."""
    for through, column, mark in ((2, "n", None), (3, "gone", None), (4, "NOTE", "note is full")):
        batch = table.batch(None, through, doubts=[Doubt("note is full", if_null=column)])
        assert writer.write(batch).rows_may_differ == mark


def test_renamed_tables_keep_it(writer, table: Staging) -> None:
    """The mark is the table's, whatever its name."""
    assert marked(writer, table)
    new = table.target._replace(table=f"{table.target.table}_new")
    leaving = table.batch(None, 3, moves_to=new)
    taking = Staging(table.folder, new, table.schema).batch(None, 3, takes_from=table.target)
    for batch in (taking, leaving, taking):
        with suppress(Exception):
            writer.write(batch)
    assert writer.open(new).rows_may_differ == NARROWED.what
    assert writer.open(table.target).rows_may_differ is None


def test_a_rebuilt_table_has_none(writer, table: Staging, orders) -> None:
    """It was filled from the log again."""
    assert marked(writer, table)
    new: TargetName = table.target._replace(table=f"{table.target.table}_filled")
    filled = Staging(table.folder, new, table.schema)
    writer.write(filled.batch(orders(("U", 1, "a", 10)), 2))
    aside = table.target._replace(table=f"{table.target.table}_aside")
    state = writer.swap(Swap(table.target, new, aside, {LANE: 3}))
    assert state.rows_may_differ is None
    assert writer.open(table.target).rows_may_differ is None
