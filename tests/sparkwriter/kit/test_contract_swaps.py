"""What every sink keeps whose tables can be exchanged: a rebuilt table takes the old one's name."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from actors.contract.ports import SwapTooEarly
from actors.contract.writes import Swap
from changes.model.errors import TargetRefused
from daemon.operations.rebuild.rebuilds import lacking
from sparkwriter.kit.writer import TargetWriter
from tests.sparkwriter.conftest import LANE
from tests.sparkwriter.kit.conftest import exists


@pytest.fixture
def writer(sink) -> TargetWriter[Any]:
    """One member."""
    return TargetWriter(sink.store())


@pytest.fixture
def filled(writer, staging, orders) -> Swap:
    """The old table with a wrong row, the new one with the right rows and more of the log."""
    old = staging.target
    writer.write(staging.batch(orders(("U", 1, "wrong", 0)), 5))
    new = old._replace(table=f"{old.table}__rebuild")
    staging.target = new
    writer.write(staging.batch(orders(("U", 1, "a", 1), ("U", 2, "b", 2)), 8, after=-1))
    staging.target = old
    return Swap(old, new, old._replace(table=f"{old.table}__before"), {LANE: 9})


def test_the_new_table_has_name_and_marks(sink, filled, rows) -> None:
    """And the old one is gone; done again it stays so."""
    for _ in range(2):
        state = sink.swaps().swap(filled)
        assert state.hwms == {LANE: 8}
        assert rows(filled.old) == [(1, "a", 1), (2, "b", 2)]
        assert not exists(sink, filled.new)
        assert not exists(sink, filled.aside)


def test_the_old_one_may_be_kept(sink, filled, rows) -> None:
    """Under another name, as it was."""
    sink.swaps().swap(replace(filled, keep_old=True))
    assert rows(filled.aside) == [(1, "wrong", 0)]
    assert rows(filled.old) == [(1, "a", 1), (2, "b", 2)]


def test_what_the_old_one_has_more_is_waited_for(sink, filled, rows) -> None:
    """It would be read by nobody again."""
    with pytest.raises(SwapTooEarly) as early:
        sink.swaps().swap(replace(filled, frontiers={LANE: 5}))
    assert early.value.marks == {LANE: 5}
    assert rows(filled.old) == [(1, "wrong", 0)]


def test_marks_do_not_go_back(sink, writer, staging, filled) -> None:
    """The old table's last messages had no row, and the new one's marks stop before them."""
    writer.write(staging.batch(None, 11, after=5))
    assert sink.swaps().swap(replace(filled, frontiers={LANE: 12})).hwms == {LANE: 11}
    assert TargetWriter(sink.store()).open(filled.old).hwms == {LANE: 11}


def test_without_rows_in_the_log_the_old_one_stays(sink, filled, rows) -> None:
    """There is nothing to put in its place."""
    sink.swaps().remove(filled.new)
    with pytest.raises(TargetRefused, match="the log holds no row of it"):
        sink.swaps().swap(filled)
    assert rows(filled.old) == [(1, "wrong", 0)]


def test_a_table_says_what_the_log_has_lost_while_it_was_rebuilt(
    sink, writer, staging, filled, orders
) -> None:
    """Its rebuild was given up. Said again it changes nothing, and writing goes on behind that."""
    here = writer.open(filled.old)
    (said,) = lacking(filled.old, here, {LANE: 20}, "")
    for _ in range(2):
        state = writer.write(said)
        assert state.hwms == {LANE: 19}
        assert state.rows_may_differ is not None
        assert f"lost {LANE} below 20" in state.rows_may_differ
    assert not list(lacking(filled.old, writer.open(filled.old), {LANE: 20}, ""))
    after = writer.write(staging.batch(orders(("U", 3, "c", 3)), 25, after=19))
    assert (after.hwms, after.rows_may_differ) == ({LANE: 25}, state.rows_may_differ)


def test_writing_goes_on_from_the_new_marks(sink, staging, filled, orders, rows) -> None:
    """What the new table has is dropped, what it has not is added."""
    sink.swaps().swap(filled)
    TargetWriter(sink.store()).write(staging.batch(orders(("U", 3, "c", 3)), 10, after=8))
    assert rows(filled.old)[-1] == (3, "c", 3)
