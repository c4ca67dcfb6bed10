"""DDL on real Iceberg tables: each statement lands once, with its offset, whatever crashes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from changes.model.errors import SinkUnavailable, TargetRefused, WaitsForName
from changes.model.model import (
    AddColumn,
    ChangeColumn,
    Column,
    DropColumn,
    DropTable,
    Mode,
    RenameColumn,
    TargetName,
    TruncateTable,
)
from offsets.fence import Straggler
from sparkwriter.iceberg import ddl as iceberg_ddl
from sparkwriter.iceberg.catalog import LakeCatalog
from tests.sparkwriter.conftest import LANE, Staging

Rows = Callable[..., list[tuple[object, ...]]]


class Crash(Exception):
    """The process is gone."""


def crash(*_: object, **__: object) -> None:
    raise Crash


@pytest.fixture
def table(writer, staging: Staging, orders) -> Staging:
    """A table with two rows, its mark at 1."""
    writer.write(staging.batch(orders(("U", 1, "a", 10), ("U", 2, "b", 20)), 1))
    return staging


def twice(writer: Any, staging: Staging, *steps: Any) -> Any:
    """Write a statement, and once more as after a lost reply."""
    batch = staging.batch(None, staging.after + 1, ddl=[steps])
    state = writer.write(batch)
    version = state.version
    again = writer.write(batch)
    assert (again.version, again.schema) == (version, state.schema)
    assert (state.covered, again.covered) == (False, True)
    assert again.hwms == {LANE: batch.lanes[LANE].through}
    return state


def names(state: Any) -> list[str]:
    return [column.name for column in state.schema.columns]


def test_rename_keeps_the_values(writer, table, rows: Rows) -> None:
    """The stored values stand under the new name: the column keeps its id."""
    state = twice(writer, table, RenameColumn("note", "remark"))
    assert names(state) == ["id", "remark", "n"]
    assert rows(table.target, "id, remark") == [(1, "a"), (2, "b")]


def test_names_that_are_exchanged_in_one_statement(writer, table, rows: Rows, orders) -> None:
    """What no look at the names alone could tell from the state before happens once."""
    twice(writer, table, RenameColumn("note", "n"), RenameColumn("n", "note"))
    assert rows(table.target, "id, n, note") == [(1, "a", 10), (2, "b", 20)]


def test_renamed_key(writer, table, rows: Rows) -> None:
    """The key goes by its new name from then on."""
    state = twice(writer, table, ChangeColumn("id", Column("oid", pa.int64())))
    assert state.schema.keys == ("oid",)


def test_a_column_named_anew_in_place_of_one_that_left(writer, table, rows: Rows) -> None:
    """``RENAME a TO b, ADD a``: the old values move, the new column shows its default."""
    added = AddColumn(Column("note", pa.string()), "new")
    twice(writer, table, RenameColumn("note", "old_note"), added)
    assert rows(table.target, "id, old_note, note") == [(1, "a", "new"), (2, "b", "new")]


def test_drop_followed(writer, table, rows: Rows) -> None:
    """The column is gone; one of its name that comes later shows none of the old values."""
    assert names(twice(writer, table, DropColumn("note"))) == ["id", "n"]
    twice(writer, table, AddColumn(Column("note", pa.string()), "new"))
    assert rows(table.target, "id, note") == [(1, "new"), (2, "new")]


def test_drop_kept(writer, table, rows: Rows, orders) -> None:
    """Stored values stay, new rows are null there; a new column of the name gets the name."""
    assert names(twice(writer, table, DropColumn("note", keep=True))) == ["id", "note", "n"]
    writer.write(table.batch(orders(("U", 3, None, 30)).drop(["note"]), 3))
    assert rows(table.target) == [(1, "a", 10), (2, "b", 20), (3, None, 30)]
    twice(writer, table, AddColumn(Column("note", pa.int32()), 7))
    assert rows(table.target, "id, note__dropped_4, note") == [
        (1, "a", 7),
        (2, "b", 7),
        (3, None, 7),
    ]


def test_a_key_column_is_not_dropped(writer, table, rows: Rows) -> None:
    """Without its key the table can't be kept equal: refused, and nothing happened."""
    with pytest.raises(TargetRefused, match="part of the key"):
        writer.write(table.batch(None, 2, ddl=[[DropColumn("id")]]))
    assert writer.open(table.target).hwms == {LANE: 1}


def test_widen(writer, table, rows: Rows) -> None:
    """A wider type is taken at once; one that can't be is left for the rows to tell."""
    wide = twice(writer, table, ChangeColumn("n", Column("n", pa.int64())))
    assert wide.schema.columns[2].type == pa.int64()
    same = twice(writer, table, ChangeColumn("n", Column("n", pa.string())))
    assert same.schema == wide.schema
    assert rows(table.target)[0] == (1, "a", 10)


def test_truncate(writer, table, rows: Rows, orders) -> None:
    """No row is left, in the same publish as the mark; rows that follow come into the table."""
    twice(writer, table, TruncateTable())
    assert rows(table.target) == []
    writer.write(table.batch(orders(("U", 2, "c", 30)), 3))
    assert rows(table.target) == [(2, "c", 30)]


def test_a_column_of_an_unknown_default_is_added_where_there_are_no_rows(
    writer, table, rows: Rows, orders
) -> None:
    """The table's files say whether there are any; what the source gave stored rows nobody told."""
    add = AddColumn(Column("made", pa.int64()), needs_no_rows="now() is not a constant")
    batch = table.batch(None, 2, ddl=[[add]])
    with pytest.raises(TargetRefused, match=r"now\(\) is not a constant"):
        writer.write(batch)
    assert rows(table.target) == [(1, "a", 10), (2, "b", 20)]
    table.after = 1
    twice(writer, table, TruncateTable())
    assert names(twice(writer, table, add))[-1] == "made"


def test_truncate_of_what_was_merged(writer, table, rows: Rows, orders) -> None:
    """Deletion vectors of earlier writes go with their files."""
    writer.write(table.batch(orders(("U", 1, "z", 1), ("D", 2, None, None)), 2))
    twice(writer, table, TruncateTable())
    assert rows(table.target) == []


@pytest.mark.parametrize("step", ["create_branch", "publish_branch"])
def test_crash_inside_a_table(
    writer, table, rows: Rows, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Before the one commit nothing is changed; after it all is, so it is done once."""
    batch = table.batch(None, 2, ddl=[[RenameColumn("note", "x"), TruncateTable()]])
    with monkeypatch.context() as patch:
        patch.setattr(iceberg_ddl, step, crash)
        with pytest.raises(Crash):
            writer.write(batch)
    state = writer.open(table.target)
    assert (names(state), state.hwms) == (["id", "note", "n"], {LANE: 1})
    assert len(rows(table.target)) == 2
    assert names(writer.write(batch)) == ["id", "x", "n"]
    assert rows(table.target) == []


def test_a_dropped_table_is_kept_until_it_comes_again(writer, table, rows: Rows, orders) -> None:
    """Its rows stay under its name; rows of a new one move it aside, and are alone."""
    twice(writer, table, DropTable(keep=True))
    assert len(rows(table.target)) == 2
    writer.write(table.batch(orders(("U", 5, "new", 5)), 3))
    assert rows(table.target) == [(5, "new", 5)]
    aside = table.target._replace(table=f"{table.target.table}__dropped_2")
    assert rows(aside) == [(1, "a", 10), (2, "b", 20)]
    assert writer.open(table.target).hwms == {LANE: 3}


def test_a_dropped_table_is_dropped(writer, table, orders, rows: Rows) -> None:
    """Where that is followed; its mark stays, so nothing of before makes it again."""
    batch = table.batch(None, 2, ddl=[[DropTable()]])
    for _ in range(2):
        state = writer.write(batch)
        assert (state.schema, state.hwms) == (None, {LANE: 2})
    writer.write(table.batch(orders(("U", 5, "new", 5)), 3))
    assert rows(table.target) == [(5, "new", 5)]


def renaming(staging: Staging, through: int = 2) -> tuple[Any, Any, TargetName]:
    """Both ends of a renaming of ``staging``'s table: two lanes, one offset."""
    old = staging.target
    new = old._replace(table=f"{old.table}_new")
    end = Staging(staging.folder, new, staging.schema)
    moves = staging.batch(None, through, ddl=[[]], moves_to=new)
    takes = end.batch(None, through, takes_from=old)
    return moves, takes, new


def test_rename_table(writer, table, rows: Rows, orders) -> None:
    """The table has its new name, with both lanes' marks; the old name is free again."""
    moves, takes, new = renaming(table)
    with pytest.raises(WaitsForName, match="waits until") as waits:
        writer.write(takes)
    assert waits.value.other == table.target
    for _ in range(2):
        assert writer.write(moves).hwms == {LANE: 2}
        assert writer.write(takes).hwms == {LANE: 2}
    assert rows(new) == [(1, "a", 10), (2, "b", 20)]
    assert writer.open(table.target).schema is None
    writer.write(table.batch(orders(("U", 9, "again", 9)), 3))
    assert rows(table.target) == [(9, "again", 9)]


@pytest.mark.parametrize("step", ["bury", "rename"])
@pytest.mark.parametrize("done", [False, True])
def test_crash_while_renaming(
    writer, table, rows: Rows, monkeypatch: pytest.MonkeyPatch, step: str, done: bool
) -> None:
    """Either the table has its old name and mark, or its new name and both have the new mark."""
    moves, takes, new = renaming(table)
    with pytest.raises(SinkUnavailable, match="has its name"):
        writer.write(takes)
    real = getattr(LakeCatalog, step)

    def dies(self: LakeCatalog, *given: Any) -> None:
        if done:
            real(self, *given)
        raise Crash

    with monkeypatch.context() as patch:
        patch.setattr(LakeCatalog, step, dies)
        with pytest.raises(Crash):
            writer.write(moves)
    renamed = step == "rename" and done
    assert writer.open(table.target).hwms == {LANE: 2 if renamed else 1}
    assert writer.open(new).hwms == ({LANE: 2} if renamed else {})
    writer.write(moves)
    writer.write(takes)
    assert rows(new) == [(1, "a", 10), (2, "b", 20)]
    assert writer.open(new).hwms == writer.open(table.target).hwms == {LANE: 2}


def test_a_table_takes_the_place_of_another(writer, table, rows: Rows, orders) -> None:
    """An online schema change: ``t TO t_old, t_gho TO t``, whatever lane comes first."""
    name, target = table.target.table, table.target
    ghost = Staging(table.folder, target._replace(table=f"{name}_gho"), table.schema)
    old = Staging(table.folder, target._replace(table=f"{name}_old"), table.schema)
    writer.write(ghost.batch(orders(("U", 1, "A", 1), ("U", 2, "B", 2)), 1))
    batches = [
        old.batch(None, 2, takes_from=target),
        ghost.batch(None, 2, moves_to=target),
        table.batch(None, 2, moves_to=old.target, takes_from=ghost.target),
    ]
    waiting = list(batches)
    for _ in range(3):
        for batch in list(waiting):
            try:
                assert writer.write(batch).hwms[LANE] == 2
            except SinkUnavailable:
                continue
            waiting.remove(batch)
    assert waiting == []
    assert rows(target) == [(1, "A", 1), (2, "B", 2)]
    assert rows(old.target) == [(1, "a", 10), (2, "b", 20)]
    for batch in batches:
        assert writer.write(batch).hwms == {LANE: 2}
    writer.write(table.batch(orders(("U", 3, "C", 3)), 3))
    assert rows(target) == [(1, "A", 1), (2, "B", 2), (3, "C", 3)]


def test_a_name_is_not_taken_from_changes_that_still_wait(
    writer, table, rows: Rows, orders
) -> None:
    """Another table had the name until just before, and its rows come later than the statement:
    taken too early, the name's mark would say that they are written."""
    moves, _, new = renaming(table, through=9)
    with pytest.raises(SinkUnavailable, match="was before is written"):
        writer.write(moves)
    before = Staging(table.folder, new, table.schema)
    writer.write(before.batch(orders(("U", 7, "before", 7)), 5))
    writer.write(before.batch(None, 8, ddl=[[DropTable()]]))
    with pytest.raises(SinkUnavailable, match="was before is written"):
        writer.write(moves)  # the statement before may be looked at once more: its reply was lost
    with pytest.raises(SinkUnavailable, match="has its name"):
        writer.write(before.batch(None, 9, takes_from=table.target))
    assert writer.write(moves).hwms == {LANE: 9}
    assert rows(new) == [(1, "a", 10), (2, "b", 20)]


def test_a_name_that_is_taken(writer, table, rows: Rows, orders) -> None:
    """A table that nothing moves out of the way is not overwritten."""
    moves, takes, new = renaming(table)
    there = Staging(table.folder, new, table.schema)
    writer.write(there.batch(orders(("U", 7, "mine", 7)), 1))
    takes = there.batch(None, 2, takes_from=table.target)
    with pytest.raises(SinkUnavailable, match="is free"):
        writer.write(moves)
    with pytest.raises(TargetRefused, match="exists already"):
        writer.write(takes)
    assert rows(new) == [(7, "mine", 7)]


def test_a_renaming_that_comes_too_late_is_fenced(writer, table, rows: Rows, orders) -> None:
    """Another member of the group did it and went on: the table there is no other's."""
    moves, takes = (replace(batch, group="g@here") for batch in renaming(table)[:2])
    with suppress(SinkUnavailable):
        writer.write(takes)
    writer.write(moves)
    end = Staging(table.folder, takes.target, table.schema)
    more = end.batch(orders(("U", 3, "c", 30)), 3, after=2)
    writer.write(replace(more, group="g@here"))
    with pytest.raises(Straggler):
        writer.write(takes)
    assert [row[0] for row in rows(takes.target)] == [1, 2, 3]


def test_rename_of_a_table_that_never_was(writer, staging, rows: Rows) -> None:
    """Both lanes get their marks, so neither waits for ever."""
    moves, takes, new = renaming(staging)
    writer.write(moves)
    assert writer.write(takes).hwms == {LANE: 2}
    assert writer.open(new).hwms == writer.open(staging.target).hwms == {LANE: 2}


def test_a_changelog_gains_columns_only(writer, staging, rows: Rows) -> None:
    """Events of the past show nothing in them."""
    log = pa.table(
        {
            "_op": ["I"],
            "_partition": pa.array([0], pa.int32()),
            "_offset": pa.array([1], pa.int64()),
            "_index": pa.array([0], pa.int32()),
            "id": pa.array([1], pa.int64()),
            "note": ["a"],
            "n": pa.array([1], pa.int32()),
        }
    )
    writer.write(staging.batch(log, 1, mode=Mode.APPEND))
    added = AddColumn(Column("c", pa.string()))
    writer.write(staging.batch(None, 2, mode=Mode.APPEND, ddl=[[added]]))
    assert rows(staging.target, "_offset, id, c") == [(1, 1, None)]
