"""A filter over partial images: the stored row decides, or the target is refused, by name."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.contract.ports import TargetRefused
from changes.shaping.shape import Shape
from sparkwriter.kit.writer import TargetWriter
from sparkwriter.sqlite.store import SqliteStore
from tests.shaping.rig import Change, Flow, Row, Rows, Source, route_of

Of = Callable[[Row], bool]

FILTERS: dict[str, tuple[set[str], Of]] = {
    "n > 0": ({"n"}, lambda r: r["n"] is not None and r["n"] > 0),
    "n IS NULL OR phone LIKE '1%'": (
        {"n", "phone"},
        lambda r: r["n"] is None or (r["phone"] or "")[:1] == "1",
    ),
    "n > 0 AND note = 'x'": (
        {"n", "note"},
        lambda r: r["n"] is not None and r["n"] > 0 and r["note"] == "x",
    ),
    "id % 2 = 0": (set(), lambda r: r["id"] % 2 == 0),
    "id % 2 = 0 OR n = 1": ({"n"}, lambda r: r["id"] % 2 == 0 or r["n"] == 1),
}


@dataclass
class Step:
    """A message, what the source has after it, and whether its row had been outside and may enter:
    then a part of it may be too little."""

    value: bytes
    rows: Rows
    may_refuse: bool


def steps_of(made: Sequence[Change], text: str) -> list[Step]:
    """The changes that can be made, as messages with partial images."""
    source, (uses, passes), found = Source(minimal=True), FILTERS[text], []
    for change in made:
        before = source.rows.get(change.key)
        value = source.message(change)
        if value is None:
            continue
        may = False
        if before is not None and change.kind in "UM":
            outside = not passes({"id": change.key, **before})
            may = outside and (change.kind == "M" or bool(uses & set(change.names)))
        found.append(Step(value, {key: dict(row) for key, row in source.rows.items()}, may))
    return found


@dataclass
class Bringing:
    """Brings steps to a target until it refuses."""

    flow: Flow
    store: SqliteStore
    at: int = 0
    refused: str = ""
    tried: list[Step] = field(default_factory=list)

    def all_of(self, steps: Sequence[Step], cuts: Sequence[int]) -> None:
        number = 0
        while self.at < len(steps) and not self.refused:
            cut = cuts[number % len(cuts)] if cuts else 3
            if cut % 3 == 0 and number:
                self.flow.restart()
            self.tried = list(steps[self.at : self.at + 1 + cut])
            try:
                self.flow.write(self.at, [step.value for step in self.tried], behind=cut % 2 == 1)
            except TargetRefused as error:
                self.refused = str(error)
            self.refused = self.refused or self.flow.refused or ""
            if not self.refused:
                self.at += len(self.tried)
            number += 1

    def found(self) -> list[Row]:
        if self.flow.state.schema is None:
            return []
        return self.store.read(self.flow.route.name).to_pylist()


def busy() -> st.SearchStrategy[list[Change]]:
    """Many changes of few rows that are there, of few values."""
    keys = st.integers(0, 3)
    row = st.fixed_dictionaries(
        {
            "n": st.sampled_from([None, -1, 1, 2]),
            "phone": st.sampled_from([None, "", "1", "23"]),
            "note": st.sampled_from([None, "x", "y"]),
        }
    )
    names = st.lists(st.sampled_from(["n", "phone", "note"]), min_size=1, max_size=2, unique=True)
    change = st.builds(Change, st.sampled_from("IUUUUMD"), keys, keys, row, names.map(tuple))
    first = st.lists(row, min_size=3, max_size=3).map(
        lambda rows: [Change("I", key, key, row, ()) for key, row in enumerate(rows)]
    )
    return st.tuples(first, st.lists(change, min_size=4, max_size=20)).map(lambda p: p[0] + p[1])


@given(
    st.sampled_from(list(FILTERS)),
    st.booleans(),
    busy(),
    st.lists(st.integers(0, 6), min_size=1, max_size=6),
)
def test_the_target_is_what_passes_or_is_refused(
    text: str, masked: bool, made: list[Change], cuts: list[int]
) -> None:
    """Nothing between: each written batch equals the source's rows of then, and only a row that
    may enter without being whole is refused."""
    uses, passes = FILTERS[text]
    masks = (("phone", "redact"),) if masked and "phone" not in uses else ()
    shape = Shape(filter=text, rename=(("id", "key"), ("n", "m")), masks=masks)
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder) / "sink.db")
        store._connection.execute("PRAGMA synchronous = off")
        flow = Flow(route_of(shape), Path(folder), lambda: TargetWriter(store))
        bringing = Bringing(flow, store)
        steps = steps_of(made, text)
        bringing.all_of(steps, cuts)
        if bringing.refused:
            assert "rows come without column" in bringing.refused
            assert any(step.may_refuse for step in bringing.tried), bringing.refused
        rows = steps[bringing.at - 1].rows if bringing.at else {}
        check_equal(bringing, rows, passes, masked=bool(masks))
        left = [path.name for path in Path(folder).iterdir() if "decided" in path.name]
        assert not left
        store.close()


def check_equal(bringing: Bringing, rows: Rows, passes: Of, masked: bool = False) -> None:
    """The target has the source's rows that pass."""
    wanted = [
        {"key": key, "m": row["n"], "note": row["note"], "phone": row["phone"]}
        for key, row in rows.items()
        if passes({"id": key, **row})
    ]
    for row in wanted:
        if masked and row["phone"] is not None:
            row["phone"] = "***"
    held = [dict(sorted(row.items())) for row in bringing.found()]
    assert sorted(held, key=repr) == sorted(wanted, key=repr)


@given(
    st.sampled_from(list(FILTERS)),
    busy(),
    st.lists(st.integers(0, 6), min_size=1, max_size=6),
    st.integers(0, 20),
)
def test_a_replay_ends_equal_or_refused(
    text: str, made: list[Change], cuts: list[int], back: int
) -> None:
    """What is stored is then newer than the changes that are read again, and may decide otherwise
    than it was: never for good."""
    shape = Shape(filter=text, rename=(("id", "key"), ("n", "m")))
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder) / "sink.db")
        store._connection.execute("PRAGMA synchronous = off")
        flow = Flow(route_of(shape), Path(folder), lambda: TargetWriter(store))
        bringing, steps = Bringing(flow, store), steps_of(made, text)
        bringing.all_of(steps, cuts)
        steps = steps[: bringing.at]
        if steps:
            bringing.at, bringing.refused, flow.refused = max(bringing.at - 1 - back, 0), "", None
            flow.reset(bringing.at)
            bringing.all_of(steps, [*reversed(cuts)])
            assert not bringing.refused or "rows come without column" in bringing.refused
            if not bringing.refused:
                check_equal(bringing, steps[-1].rows, FILTERS[text][1])
        store.close()


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
