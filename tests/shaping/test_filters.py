"""A target equals its route's filter and computed columns, applied to the source's table."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from changes.model.errors import TargetRefused
from changes.routes.shaping.shape import Shape
from sparkwriter.kit.writer import TargetWriter
from sparkwriter.sqlite.store import SqliteStore
from tests.shaping.rig import Change, Flow, Row, Source, bring, changes, route_of

Of = Callable[[Row], Any]

FILTERS: dict[str, Of] = {
    "n > 0": lambda r: r["n"] is not None and r["n"] > 0,
    "n IS NULL OR phone LIKE '1%'": lambda r: r["n"] is None or (r["phone"] or "")[:1] == "1",
    "NOT n = 2": lambda r: r["n"] is not None and r["n"] != 2,
    "coalesce(n, 0) <> 2": lambda r: r["n"] != 2,
    "note IN ('x', '')": lambda r: r["note"] in ("x", ""),
    "id % 2 = 0 AND length(phone) < 4": lambda r: (
        r["id"] % 2 == 0 and r["phone"] is not None and len(r["phone"]) < 4
    ),
}
COMPUTED: dict[tuple[str, str], Of] = {
    ("double", "n * 2 + 1"): lambda r: None if r["n"] is None else r["n"] * 2 + 1,
    ("tag", "coalesce(note, '-') || ':' || CAST(id AS string)"): lambda r: (
        f"{'-' if r['note'] is None else r['note']}:{r['id']}"
    ),
    ("sign", "CASE WHEN n > 0 THEN 'p' WHEN n < 0 THEN 'm' END"): lambda r: (
        None if not r["n"] else "p" if r["n"] > 0 else "m"
    ),
}


def shown(shape: Shape, rows: dict[int, Row]) -> list[Row]:
    """The rows as the target is to show them."""
    every = ({"id": key, **row} for key, row in rows.items())
    passing = (row for row in every if not shape.filter or FILTERS[shape.filter](row))
    names = dict(shape.rename)
    return [
        {names.get(name, name): value for name, value in row.items() if shape.shows(name)}
        | {name: COMPUTED[name, text](row) for name, text in shape.computed}
        for row in passing
    ]


@given(
    st.sampled_from(["", *FILTERS]),
    st.lists(st.sampled_from(list(COMPUTED)), unique=True),
    st.sampled_from([(), ("n",), ("phone", "note")]),
    changes(),
    st.lists(st.integers(0, 6), max_size=6),
)
def test_the_target_is_what_passes(
    condition: str,
    computed: list[tuple[str, str]],
    drop: tuple[str, ...],
    made: list[Change],
    cuts: list[int],
) -> None:
    """Rows enter and leave, keys move; the columns that decide need not be shown."""
    shape = Shape(filter=condition, computed=tuple(computed), drop=drop, rename=(("id", "key"),))
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder) / "sink.db")
        source = Source(minimal=False)
        flow = Flow(route_of(shape), Path(folder), lambda: TargetWriter(store))
        bring(flow, source, made, cuts)
        assert flow.refused is None
        found = [] if flow.state.schema is None else store.read(flow.route.name).to_pylist()
        assert sorted(found, key=repr) == sorted(shown(shape, source.rows), key=repr)
        store.close()


ROW: Row = {"n": 1, "phone": "1", "note": "x"}


def flow_of(shape: Shape, folder: Path) -> Flow:
    """A flow into a file."""
    return Flow(route_of(shape), folder, lambda: TargetWriter(SqliteStore(folder / "sink.db")))


def messages(minimal: bool, *made: Change) -> list[bytes]:
    """The messages of some changes."""
    source = Source(minimal)
    return [value for change in made if (value := source.message(change)) is not None]


@pytest.mark.parametrize(
    ("shape", "said"),
    [
        (
            Shape(filter="phone = '1'", drop=("phone",)),
            "rows come without column phone, and the filter uses it",
        ),
        (
            Shape(filter="n > 0", history=True),
            "without column phone, and a filter needs whole rows",
        ),
        (Shape(computed=(("c", "phone || 'x'"),)), "column phone, and an expression uses it"),
    ],
)
def test_rows_that_lack_what_decides_refuse_the_target(
    shape: Shape, said: str, tmp_path: Path
) -> None:
    """A row that enters would be NULL where its image has nothing (MINIMAL)."""
    row = {**ROW, "n": 5}
    values = messages(True, Change("I", 1, 1, ROW, ()), Change("U", 1, 1, row, ("n",)))
    flow = flow_of(shape, tmp_path)
    flow.write(0, values)
    assert flow.refused is not None
    assert said in flow.refused


def without(value: bytes, *names: str) -> bytes:
    """A message of a table that has not these columns (yet, or any more)."""
    said = msgspec.json.decode(value)
    for row in [*said["data"], *(said["old"] or [])]:
        for name in names:
            row.pop(name, None)
    types = {name: words for name, words in said["mysqlType"].items() if name not in names}
    return msgspec.json.encode({**said, "mysqlType": types})


def test_rows_of_before_a_column_are_whole(tmp_path: Path) -> None:
    """No row before them had it, and the target has not either: there they are NULL."""
    one, two = messages(False, *(Change("I", key, key, ROW, ()) for key in (1, 2)))
    flow = flow_of(Shape(filter="n > 0"), tmp_path)
    flow.write(0, [without(one, "note"), two])
    assert flow.refused is None
    rows = SqliteStore(tmp_path / "sink.db").read(flow.route.name).to_pylist()
    assert sorted((row["id"], row["note"]) for row in rows) == [(1, None), (2, "x")]


def test_rows_that_lack_a_column_of_the_target_are_not(tmp_path: Path) -> None:
    """Beside rows that have it, or alone."""
    values = messages(False, *(Change("I", key, key, ROW, ()) for key in (1, 2, 3)))
    flow = flow_of(Shape(filter="n > 0"), tmp_path)
    flow.write(0, values[:1])
    flow.write(1, [without(values[1], "note"), values[2]])
    assert flow.refused is not None
    assert "rows come without column note, and a filter needs whole rows" in flow.refused
    flow.refused = None
    flow.restart()
    with pytest.raises(TargetRefused, match="without column note, which the target has"):
        flow.write(1, [without(values[1], "note")])


def test_columns_that_decide_nothing_may_be_missing(tmp_path: Path) -> None:
    """Neither used nor shown."""
    shape = Shape(filter="n > 0", columns=("id", "n"))
    row = {**ROW, "n": 5}
    flow = flow_of(shape, tmp_path)
    flow.write(0, messages(True, Change("I", 1, 1, ROW, ()), Change("U", 1, 1, row, ("n",))))
    assert flow.refused is None
    assert SqliteStore(tmp_path / "sink.db").read(flow.route.name).to_pylist() == [
        {"id": 1, "n": 5}
    ]


@pytest.mark.parametrize(
    "shape",
    [Shape(filter="10 DIV n > 1"), Shape(computed=(("c", "10 DIV n"),))],
    ids=["filter", "computed"],
)
def test_a_row_without_a_result_is_a_bad_record(shape: Shape, tmp_path: Path) -> None:
    """What came before it is staged; it is named by its place and reason."""
    bad = {**ROW, "n": 0}
    made = [Change("I", key, key, bad if key == 3 else ROW, ()) for key in (1, 2, 3, 4)]
    flow = flow_of(shape, tmp_path)
    staged = flow.write(0, messages(False, *made))
    assert (staged.rows, staged.bad and staged.bad.index) == (2, 2)
    assert staged.bad is not None
    assert "division by zero" in staged.bad.reason


def test_what_the_filter_leaves_out_is_not_computed(tmp_path: Path) -> None:
    """So a filter may guard a column."""
    shape = Shape(filter="n <> 0", computed=(("c", "10 DIV n"),))
    flow = flow_of(shape, tmp_path)
    staged = flow.write(0, messages(False, Change("I", 1, 1, {**ROW, "n": 0}, ())))
    assert staged.bad is None


@pytest.mark.parametrize(
    ("shape", "said"),
    [
        (Shape(filter="note > 5"), "filter: comparing with >: text with bigint"),
        (Shape(filter="n + 1"), "filter: a condition is required, not bigint"),
        (Shape(filter="zip = '1'"), "filter: there is no column zip"),
        (Shape(computed=(("note", "n + 1"),)), "a column would be named note, and another one"),
    ],
)
def test_an_expression_that_does_not_fit_refuses_the_target(
    shape: Shape, said: str, tmp_path: Path
) -> None:
    flow = flow_of(shape, tmp_path)
    flow.write(0, messages(False, Change("I", 1, 1, ROW, ())))
    assert flow.refused is not None
    assert said in flow.refused
