"""A filter over partial images: the stored row decides, or the target is refused, by name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from changes.model.errors import TargetRefused
from changes.routes.shaping.shape import Shape
from sparkwriter.kit.writer import TargetWriter
from sparkwriter.sqlite.store import SqliteStore
from tests.shaping.rig import Change, Flow, Row, Source, route_of

ROW: Row = {"n": 1, "phone": "1", "note": "x"}
OUT: Row = {"n": -1, "phone": "2", "note": "y"}


def insert(key: int, row: Row) -> Change:
    return Change("I", key, key, row, ())


def update(key: int, **values: Any) -> Change:
    return Change("U", key, key, {**ROW, **values}, tuple(values))


def move(key: int, new: int, **values: Any) -> Change:
    return Change("M", key, new, {**ROW, **values}, tuple(values))


def brought(folder: Path, shape: Shape, *batches: Sequence[Change]) -> tuple[list[Row], str]:
    """What the target has after these batches of partial images, and why it was refused."""
    source, store = Source(minimal=True), SqliteStore(folder / "sink.db")
    flow, at, refused = Flow(route_of(shape), folder, lambda: TargetWriter(store)), 0, ""
    for batch in batches:
        values = [value for change in batch if (value := source.message(change)) is not None]
        flow.restart()
        try:
            flow.write(at, values)
        except TargetRefused as error:
            refused = str(error)
            break
        at += len(values)
        refused = flow.refused or ""
        if refused:
            break
    rows = [] if flow.state.schema is None else store.read(flow.route.name).to_pylist()
    store.close()
    return sorted(rows, key=repr), refused


DELETE = Change("D", 1, 1, ROW, ())
POSITIVE = Shape(filter="n > 0")


@pytest.mark.parametrize("together", [True, False], ids=["one batch", "several"])
@pytest.mark.parametrize(
    ("made", "rows"),
    [
        ([insert(1, ROW), update(1, note="z")], [{"id": 1, **ROW, "note": "z"}]),
        ([insert(1, ROW), update(1, n=2)], [{"id": 1, **ROW, "n": 2}]),
        ([insert(1, ROW), update(1, n=-2)], []),
        ([insert(1, ROW), update(1, n=None)], []),
        ([insert(1, OUT), update(1, note="z")], []),
        ([insert(1, OUT), update(1, n=-5)], []),
        ([insert(1, ROW), move(1, 2, note="z")], [{"id": 2, **ROW, "note": "z"}]),
        ([insert(1, ROW), move(1, 2, n=-1)], []),
        ([insert(1, ROW), update(1, n=-2), update(1, note="z")], []),
    ],
)
def test_a_partial_row_is_what_its_whole_one_is(
    together: bool, made: list[Change], rows: list[Row], tmp_path: Path
) -> None:
    """Stays, leaves, stays outside, moves."""
    batches = [made] if together else [[change] for change in made]
    assert brought(tmp_path, POSITIVE, *batches) == (rows, "")


def test_a_row_that_left_in_the_same_batch_comes_back_whole(tmp_path: Path) -> None:
    """The fold has what it was."""
    made = [insert(1, OUT), update(1, n=3)]
    assert brought(tmp_path, POSITIVE, made) == ([{"id": 1, **OUT, "n": 3}], "")


@pytest.mark.parametrize(
    "batches",
    [
        [[insert(1, OUT)], [update(1, n=3)]],
        [[insert(1, OUT)], [move(1, 2, note="z")]],
        [[insert(1, ROW), insert(2, ROW)], [update(1, n=-1)], [update(1, n=4)]],
        [[insert(1, ROW), insert(2, OUT)], [DELETE, move(2, 1, note="z")]],
    ],
    ids=["enters", "moves", "comes back", "moves to a row that went"],
)
def test_a_row_that_enters_and_is_not_whole_refuses_the_target(
    batches: list[list[Change]], tmp_path: Path
) -> None:
    """Nobody has the rest of it. What is there stays."""
    _, refused = brought(tmp_path, POSITIVE, *batches)
    assert "rows come without column" in refused
    assert "a filter needs whole rows" in refused


def test_a_row_of_which_not_all_is_known_that_decides(tmp_path: Path) -> None:
    """Stored: the rest is read. Not stored: refused, whatever the rest may be."""
    shape = Shape(filter="n > 0 AND note = 'x'")
    rows, refused = brought(tmp_path, shape, [insert(1, ROW), insert(2, ROW)], [update(1, n=3)])
    assert (rows[0]["n"], refused) == (3, "")
    rows, refused = brought(tmp_path, shape, [], [])
    (tmp_path / "b").mkdir()
    _, refused = brought(tmp_path / "b", shape, [insert(1, {**ROW, "note": "y"})], [update(1, n=3)])
    assert "without column" in refused


@pytest.mark.parametrize(
    "shape",
    [
        Shape(filter="n > 0", drop=("n",)),
        Shape(filter="n > 0", masks=(("n", "redact"),)),
        Shape(filter="n > 0", columns=("id", "note")),
    ],
    ids=["dropped", "masked", "not among columns"],
)
def test_what_the_target_does_not_keep_decides_nothing(shape: Shape, tmp_path: Path) -> None:
    """A stored row can't tell it."""
    _, refused = brought(tmp_path, shape, [insert(1, ROW)], [update(1, note="z")])
    assert "column n, and the filter uses it, and the target does not show it as it is" in refused


def test_with_all_that_decides_it_need_not_be_kept(tmp_path: Path) -> None:
    """As where large values alone are left out (TOAST, NOBLOB)."""
    shape = Shape(filter="n > 0", drop=("n",))
    made = [insert(1, ROW)], [update(1, n=2, note="z")], [update(1, n=-2)]
    assert brought(tmp_path, shape, *made[:2]) == ([{"id": 1, "phone": "1", "note": "z"}], "")
    (tmp_path / "b").mkdir()
    assert brought(tmp_path / "b", shape, *made) == ([], "")


def test_what_cant_be_decided_stops(tmp_path: Path) -> None:
    """There is no record of a completed row that could be set aside."""
    shape = Shape(filter="10 DIV (n + length(note)) > 0")
    _, refused = brought(tmp_path, shape, [insert(1, ROW)], [update(1, n=-1)])
    assert "filter: division by zero, in a row that was completed" in refused
