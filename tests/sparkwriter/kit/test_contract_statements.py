"""What a sink that follows statements keeps: each lands once, whatever ends between its steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pytest
from structlog.testing import capture_logs

from actors.contract.writes import StagedBatch
from changes.model.errors import SinkUnavailable, TargetRefused, WaitsForName
from changes.model.model import (
    AddColumn,
    ChangeColumn,
    Column,
    DropColumn,
    DropTable,
    RenameColumn,
    TruncateTable,
)
from sparkwriter.kit.writer import TargetWriter
from tests.sparkwriter.conftest import LANE, Staging
from tests.sparkwriter.kit.conftest import Sink, exists

STEPS = (
    "create",
    "change_schema",
    "publish",
    "reset",
    "change",
    "move",
    "set_aside",
    "drop",
    "bury",
    "free",
)


class Ended(Exception):
    """The process is gone."""


class Mortal:
    """A store whose process ends at its n-th step: before that is done, or after."""

    def __init__(self, store: Any, left: int, done: bool) -> None:
        self._store, self.left, self._done = store, left, done

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._store, name)
        if name not in STEPS:
            return real

        def step(*args: Any) -> Any:
            self.left -= 1
            if self.left < 0 and not self._done:
                raise Ended
            answer = real(*args)
            if self.left < 0:
                raise Ended
            return answer

        return step


@pytest.fixture
def writer(sink: Sink) -> TargetWriter[Any]:
    """One member."""
    return TargetWriter(sink.store())


@pytest.fixture
def table(writer, staging, orders) -> Staging:
    """A table with two rows, its mark at 1."""
    writer.write(staging.batch(orders(("U", 1, "a", 10), ("U", 2, "b", 20)), 1))
    return staging


def twice(writer: Any, staging: Staging, *steps: Any) -> Any:
    """Write a statement, and once more as after a lost reply."""
    batch = staging.batch(None, staging.after + 1, ddl=[steps])
    state = writer.write(batch)
    again = writer.write(batch)
    assert (again.version, again.schema) == (state.version, state.schema)
    assert (state.covered, again.covered) == (False, True)
    assert again.hwms == {LANE: batch.lanes[LANE].through}
    return state


def names(state: Any) -> list[str]:
    return [column.name for column in state.schema.columns]


def test_columns_follow(writer, table, rows) -> None:
    """Renamed and exchanged ones keep their values, added ones show their default."""
    twice(writer, table, RenameColumn("note", "n"), RenameColumn("n", "note"))
    assert rows(table.target, "id", "n", "note") == [(1, "a", 10), (2, "b", 20)]
    twice(writer, table, AddColumn(Column("m", pa.int32()), 7), DropColumn("note"))
    assert rows(table.target) == [(1, "a", 7), (2, "b", 7)]
    state = twice(writer, table, ChangeColumn("id", Column("oid", pa.int64())))
    assert state.schema.keys == ("oid",)
    assert names(state) == ["oid", "n", "m"]


def test_a_column_that_is_kept_gives_its_name_to_the_next(writer, table, rows) -> None:
    """Its values stay, under a name that tells when it left."""
    assert names(twice(writer, table, DropColumn("note", keep=True))) == ["id", "note", "n"]
    twice(writer, table, AddColumn(Column("note", pa.string()), "new"))
    assert rows(table.target, "id", "note__dropped_3", "note") == [
        (1, "a", "new"),
        (2, "b", "new"),
    ]


def test_truncate_and_drop(sink, writer, table, rows, orders) -> None:
    """An emptied table takes rows again; a dropped one's name shows where it went."""
    twice(writer, table, TruncateTable())
    assert rows(table.target) == []
    writer.write(table.batch(orders(("U", 4, "d", 4)), 3))
    assert rows(table.target) == [(4, "d", 4)]
    gone = table.batch(None, 4, ddl=[[DropTable()]])
    assert writer.write(gone).schema is None
    assert not exists(sink, table.target)
    assert writer.write(gone).hwms == {LANE: 4}
    writer.write(table.batch(orders(("U", 9, "again", 9)), 5))
    assert rows(table.target) == [(9, "again", 9)]


def test_a_table_that_is_kept_moves_aside_for_the_next(sink, writer, table, rows, orders) -> None:
    """Its rows stay; those of the new one are alone."""
    twice(writer, table, DropTable(keep=True))
    assert len(rows(table.target)) == 2
    writer.write(table.batch(orders(("U", 9, "new", 9)), 3))
    assert rows(table.target) == [(9, "new", 9)]
    aside = table.target._replace(table=f"{table.target.table}__dropped_2")
    assert len(rows(aside)) == 2


def test_a_name_that_is_there_is_not_overwritten(writer, table, rows, orders) -> None:
    """Nor taken before what it was is written."""
    new = table.target._replace(table=f"{table.target.table}_new")
    there = Staging(table.folder, new, table.schema)
    moves = table.batch(None, 2, ddl=[[]], moves_to=new)
    with pytest.raises(SinkUnavailable, match="was before is written"):
        writer.write(moves)
    writer.write(there.batch(orders(("U", 7, "mine", 7)), 1))
    with pytest.raises(WaitsForName, match="is free"):
        writer.write(moves)
    with pytest.raises(TargetRefused, match="exists already"):
        writer.write(there.batch(None, 2, takes_from=table.target))
    assert rows(new) == [(7, "mine", 7)]


def test_a_table_whose_new_name_was_loaded_meanwhile_is_set_aside(
    sink: Sink, writer, table, rows, orders
) -> None:
    """The load has what it held, and its marks are past the renaming: nothing is left to move."""
    new = table.target._replace(table=f"{table.target.table}_new")
    loaded = Staging(table.folder, new, table.schema)
    writer.write(loaded.batch(orders(("U", 1, "A", 1), ("U", 2, "b", 20)), 5))
    moves = table.batch(None, 2, moves_to=new)
    state = writer.write(moves)
    assert (state.schema, state.hwms) == (None, {LANE: 2})
    assert writer.write(moves).hwms == {LANE: 2}
    assert rows(new) == [(1, "A", 1), (2, "b", 20)]
    assert rows(new._replace(table=f"{table.target.table}__dropped_2")) == [
        (1, "a", 10),
        (2, "b", 20),
    ]
    assert not exists(sink, table.target)
    assert writer.open(new).hwms == {LANE: 5}


def test_a_new_name_whose_former_table_was_loaded_meanwhile_is_said_to_lack_its_rows(
    writer, table, orders
) -> None:
    """The one of the former name is another table by now, or was loaded behind the renaming."""
    new = table.target._replace(table=f"{table.target.table}_new")
    writer.write(table.batch(orders(("U", 3, "c", 30)), 5))
    taker = Staging(table.folder, new, table.schema)
    with capture_logs() as logs:
        state = writer.write(taker.batch(None, 2, takes_from=table.target))
    assert (state.schema, state.hwms) == (None, {LANE: 2})
    (said,) = [each for each in logs if each["event"] == "renamed_without_a_table"]
    assert (said["target"], said["renamed_from"]) == (str(new), str(table.target))
    assert f"binlogd tables load {new}" in said["help"]


def play(writers: Callable[[], Any], batches: Sequence[StagedBatch]) -> None:
    """Write batches until all have landed, those that wait for others later."""
    waiting, writer = list(batches), writers()
    for _ in range(8 * len(waiting)):
        if not waiting:
            return
        batch = waiting.pop(0)
        try:
            writer.write(batch)
        except WaitsForName:
            waiting.append(batch)
        except Ended:
            waiting.insert(0, batch)
            writer = writers()
    raise AssertionError(f"still waiting: {waiting}")


def test_a_table_moves_to_a_namespace_where_its_name_was_anothers(
    sink: Sink, writer, table, rows, orders
) -> None:
    """What belongs to a table, such as PostgreSQL's indexes, may still be called after its first
    name there, and moves along."""
    name, space = table.target.table, f"{table.target.namespace}_too"
    there, elsewhere = (
        Staging(table.folder, table.target._replace(namespace=space, table=each), table.schema)
        for each in (name, f"{name}_else")
    )
    writer.write(there.batch(orders(("U", 7, "first", 7)), 1))
    moves = [
        there.batch(None, 2, moves_to=elsewhere.target),
        elsewhere.batch(None, 2, takes_from=there.target),
    ]
    play(lambda: writer, moves)
    there = Staging(table.folder, there.target, table.schema)
    moves = [
        table.batch(None, 3, moves_to=there.target),
        there.batch(None, 3, takes_from=table.target),
    ]
    play(lambda: writer, moves)
    assert rows(there.target) == [(1, "a", 10), (2, "b", 20)]
    assert rows(elsewhere.target) == [(7, "first", 7)]
    assert not exists(sink, table.target)


def online_change(staging: Staging, orders: Any) -> tuple[Staging, Staging, list[StagedBatch]]:
    """``t TO t_old, t_gho TO t``, with a write and a statement before and a write after."""
    name, target = staging.target.table, staging.target
    ghost = Staging(staging.folder, target._replace(table=f"{name}_gho"), staging.schema)
    old = Staging(staging.folder, target._replace(table=f"{name}_old"), staging.schema)
    before = [
        staging.batch(orders(("U", 1, "a", 10), ("U", 2, "b", 20)), 1),
        ghost.batch(orders(("U", 1, "A", 1), ("U", 2, "B", 2)), 1),
        ghost.batch(None, 2, ddl=[[RenameColumn("note", "remark")]]),
    ]
    swap = [
        ghost.batch(None, 3, moves_to=target),
        old.batch(None, 3, takes_from=target),
        staging.batch(None, 3, moves_to=old.target, takes_from=ghost.target),
    ]
    return old, ghost, [*before, *swap]


@pytest.mark.parametrize("done", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("at", range(9))
def test_an_end_at_each_step_is_harmless(
    sink: Sink, staging, rows, orders, at: int, done: bool
) -> None:
    """Two names change places, and every process that is asked to see to it ends once."""
    old, ghost, batches = online_change(staging, orders)
    mortal = Mortal(sink.store(), at, done)
    lives = iter([mortal])
    play(lambda: TargetWriter(next(lives, sink.store())), batches)
    assert mortal.left < 0, "it outlived all steps"
    assert rows(staging.target, "id", "remark", "n") == [(1, "A", 1), (2, "B", 2)]
    assert rows(old.target) == [(1, "a", 10), (2, "b", 20)]
    assert not exists(sink, ghost.target)
    writer = TargetWriter(sink.store())
    for one in (staging, old, ghost):
        assert writer.open(one.target).hwms == {LANE: 3}
    for batch in batches[3:]:
        assert writer.write(batch).hwms == {LANE: 3}
