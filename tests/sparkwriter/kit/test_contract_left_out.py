"""Inserts that lack columns of the target, on each sink: the mark names them, or they need none."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from structlog.testing import capture_logs

from actors.contract.writes import Doubt, StagedBatch
from changes.model.model import (
    CHANGELOG_NAMES,
    OP,
    AddColumn,
    Column,
    DropColumn,
    Mode,
    TableSchema,
)
from changes.model.types import CHANGELOG_COLUMNS
from sparkwriter.kit.shape import lacked
from sparkwriter.kit.writer import TargetWriter
from sparkwriter.sql.base.session import make_once, target_name
from tests.sparkwriter.databases import JdbcTables

ID_NOTE = (Column("id", pa.int64()), Column("note", pa.string()))
NARROW = TableSchema(ID_NOTE, ("id",))


@pytest.fixture
def writer(sink) -> TargetWriter[Any]:
    """One member."""
    return TargetWriter(sink.store())


def narrow(staging, through: int, carried: set[str] | None, *keys: int) -> StagedBatch:
    """Rows of a run that has not shown the column n."""
    keys = keys or (through,)
    ids, notes = pa.array(keys, pa.int64()), pa.array(["x"] * len(keys), pa.string())
    table = pa.table({OP: ["U"] * len(keys), "id": ids, "note": notes})
    made = staging.batch(table, through, schema=NARROW)
    return replace(made, carried=None if carried is None else frozenset(carried))


def test_a_column_that_this_runs_rows_have_not_shown(sink, writer, staging, rows, orders) -> None:
    """It took its default at the source: the mark names it, once, and the next run finds it."""
    writer.write(staging.batch(orders(("U", 1, "a", 1)), 1))
    with capture_logs() as logs:
        state = writer.write(narrow(staging, 2, {"id", "note"}))
        again = writer.write(narrow(staging, 3, {"id", "note"}))
    (said,) = [entry for entry in logs if entry["event"] == "rows_may_differ"]
    assert "column n:" in said["what"]
    assert state.rows_may_differ == again.rows_may_differ == said["what"]
    assert TargetWriter(sink.store()).open(staging.target).rows_may_differ == said["what"]
    assert rows(staging.target) == [(1, "a", 1), (2, "x", None), (3, "x", None)]


def test_rows_that_may_lack_columns_without_a_word(writer, staging, orders) -> None:
    """Updates, and rows of writers whose inserts are whole."""
    writer.write(staging.batch(orders(("U", 1, "a", 1)), 1))
    assert writer.write(narrow(staging, 2, None, 1)).rows_may_differ is None


def test_a_column_that_some_inserts_of_a_batch_lack(writer, staging, orders) -> None:
    """The rows show it, so NULL is written: also in the first batch of a new table."""
    made = replace(staging.batch(orders(("U", 1, "a", 1)), 1), carried=frozenset({"id", "NOTE"}))
    mark = writer.write(made).rows_may_differ
    assert mark is not None
    assert ("column n:" in mark, "column note:" in mark) == (True, False)


def test_a_column_that_the_source_has_dropped(writer, staging, orders) -> None:
    """The target keeps it; no insert can have it."""
    writer.write(staging.batch(orders(("U", 1, "a", 1)), 1))
    writer.write(staging.batch(None, 2, ddl=[[DropColumn("n", keep=True)]]))
    assert writer.write(narrow(staging, 3, {"id", "note"})).rows_may_differ is None


def test_a_dropped_column_that_gave_its_name_to_another(sink, writer, staging, orders) -> None:
    """It stays beside the new one, under a name that no insert can have, and no filter needs."""
    writer.write(staging.batch(orders(("U", 1, "a", 1)), 1))
    writer.write(staging.batch(None, 2, ddl=[[DropColumn("n", keep=True)]]))
    added = AddColumn(Column("n", pa.string()), "new")
    # Where stored rows can't be given the default, the statement itself is noted.
    noted = writer.write(staging.batch(None, 3, ddl=[[added]])).rows_may_differ
    columns = writer.open(staging.target).schema.columns
    (kept,) = [column.name for column in columns if "__dropped_" in column.name]
    assert writer.write(narrow(staging, 4, {"id", "note", "n"})).rows_may_differ == noted
    mark = writer.write(narrow(staging, 5, {"id", "note"})).rows_may_differ
    assert mark is not None
    assert ("column n:" in mark, kept in mark) == (True, False)
    store = sink.store()
    assert lacked(store, narrow(staging, 6, None), store.look(staging.target)) == ["n"]


def test_a_changelog(writer, staging, orders) -> None:
    """Its row says NULL, which is not what happened."""
    names = list(CHANGELOG_NAMES)
    types = dict(CHANGELOG_COLUMNS)

    def log(offset: int, columns: dict[str, pa.Array]) -> pa.Table:
        marks = {"_op": "I", "_partition": 0, "_offset": offset, "_index": 0}
        own = {name: pa.array([marks[name]], types[name]) for name in names}
        return pa.table(own | columns)

    ids, notes = pa.array([1], pa.int64()), pa.array(["a"])
    whole = {"id": ids, "note": notes, "n": pa.array([1], pa.int32())}
    schema = TableSchema((*ID_NOTE, Column("n", pa.int32())), ())
    first = staging.batch(log(1, whole), 1, mode=Mode.APPEND, schema=schema)
    writer.write(replace(first, carried=frozenset({"id", "note", "n"})))
    part = log(2, {"id": ids, "note": notes})
    second = staging.batch(part, 2, mode=Mode.APPEND, schema=TableSchema(ID_NOTE, ()))
    mark = writer.write(replace(second, carried=frozenset({"id", "note"}))).rows_may_differ
    assert mark is not None
    assert "column n:" in mark
    third = staging.batch(log(3, whole), 3, mode=Mode.APPEND, schema=schema)
    told = Doubt("db.a: column n: inserts come without it", amid=True)
    assert writer.write(replace(third, doubts=(told,))).rows_may_differ == f"{mark}; {told.what}"


def test_a_column_that_the_table_fills_by_itself(sink, writer, staging, rows) -> None:
    """A column of the user's own, with a default, in a table that somebody else made. One without
    is the source's as far as anybody knows."""
    if not isinstance(sink, JdbcTables):
        pytest.skip("tables of others are the databases'")
    target = staging.target
    session = sink.store().session
    make_once(session, f"CREATE SCHEMA IF NOT EXISTS {session.dialect.quote(target.namespace)}")
    session.run(
        f"CREATE TABLE {target_name(session.dialect, target)} (id bigint PRIMARY KEY, note text, "
        "n int DEFAULT 5, remark text)"
    )
    mark = writer.write(narrow(staging, 1, {"id", "note"})).rows_may_differ
    assert mark is not None
    assert ("column remark:" in mark, "column n:" in mark) == (True, False)
    assert rows(target, "id", "note", "n") == [(1, "x", 5)]


def test_a_label_that_went_while_nobody_ran(sink, staging, orders) -> None:
    """The target keeps an enumeration's labels: stored rows of the source have another one now."""
    first = TargetWriter(sink.store())
    old, more, new = "enum('sad','ok')", "enum('sad','ok','glad')", "enum('blue','ok','glad')"
    first.write(replace(staging.batch(orders(("U", 1, "sad", 1)), 1), labels={"note": old}))
    second = TargetWriter(sink.store())
    state = second.write(
        replace(staging.batch(orders(("U", 2, "ok", 1)), 2), labels={"note": more})
    )
    assert state.rows_may_differ is None
    second.write(staging.batch(orders(("U", 3, "ok", 1)), 3))
    state = second.write(replace(staging.batch(orders(("U", 4, "ok", 1)), 4), labels={"note": new}))
    assert state.rows_may_differ == f"{staging.target}: column note from {more} to {new}"
