"""A target equals its route's shape of the source's table: columns, names, masks."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from changes.routes.shaping.shape import Shape
from sparkwriter.kit.writer import TargetWriter
from sparkwriter.sqlite.store import SqliteStore
from tests.shaping.oracle import shown
from tests.shaping.rig import SALT, Change, Flow, Source, bring, changes, route_of


@st.composite
def shapes(draw: st.DrawFn) -> Shape:
    """Any shape of the table that contradicts nothing."""
    others = ["n", "phone", "note"]
    hidden = draw(st.lists(st.sampled_from(others), unique=True))
    left = [name for name in ("id", *others) if name not in hidden]
    listed = draw(st.booleans())
    kinds = dict.fromkeys(others, ("sha256", "redact", "keep_last(2)"))
    kinds["id"] = ("sha256",)
    masks = tuple(
        (name, draw(st.sampled_from(kinds[name]))) for name in left if draw(st.booleans())
    )
    swapped = draw(st.permutations(left))
    new = {"id": "key", "n": "number"}
    pairs = zip(left, swapped, strict=True) if draw(st.booleans()) else new.items()
    rename = tuple((old, name) for old, name in pairs if old in left)
    salt = SALT if any(words == "sha256" for _, words in masks) else ""
    columns, drop = (tuple(left), ()) if listed else (None, tuple(hidden))
    return Shape(masks=masks, rename=rename, columns=columns, drop=drop, salt=salt)


@given(shapes(), changes(), st.booleans(), st.lists(st.integers(0, 6), max_size=6))
def test_the_target_is_the_shape_of_the_table(
    shape: Shape, made: list[Change], minimal: bool, cuts: list[int]
) -> None:
    """Whatever the images, the sizes of batches, the members that come and go."""
    with tempfile.TemporaryDirectory() as folder:
        stores: list[SqliteStore] = []

        def writer() -> TargetWriter[object]:
            stores.append(SqliteStore(Path(folder) / "sink.db"))
            return TargetWriter(stores[-1])

        source, flow = Source(minimal), Flow(route_of(shape), Path(folder), writer)
        bring(flow, source, made, cuts)
        assert flow.refused is None
        if flow.state.schema is None:
            assert not source.rows
            return
        found = stores[-1].read(flow.route.name).to_pylist()
        wanted = shown(shape, source.rows)
        assert sorted(found, key=repr) == sorted(wanted, key=repr)
        for store in stores:
            store.close()


@pytest.mark.parametrize("together", [True, False])
def test_a_row_with_a_masked_key_moves_with_what_it_had(together: bool, tmp_path: Path) -> None:
    """Its old key is masked, too: a partial image takes its other columns from there."""
    shape = Shape(masks=(("id", "sha256"),), rename=(("id", "key"),), salt=SALT)
    store = SqliteStore(tmp_path / "sink.db")
    source, flow = Source(True), Flow(route_of(shape), tmp_path, lambda: TargetWriter(store))
    made = [
        Change("I", 1, 1, {"n": 1, "phone": "1", "note": "x"}, ()),
        Change("M", 1, 2, {"n": 2, "phone": "2", "note": "y"}, ("n",)),
    ]
    bring(flow, source, made, [4] if together else [0])
    assert store.read(flow.route.name).to_pylist() == shown(shape, source.rows)
    assert source.rows == {2: {"n": 2, "phone": "1", "note": "x"}}
    store.close()


@pytest.mark.parametrize(
    ("shape", "said"),
    [
        (Shape(masks=(("fone", "redact"),)), "mask names column fone, which the rows don't have"),
        (
            Shape(rename=(("note", "N"),)),
            "a column would be named N, and another one is named n, in another case",
        ),
        (Shape(drop=("id",)), "column id is not shown, and is part of the key"),
        (Shape(masks=(("id", "redact"),)), "only sha256 keeps two values two"),
        (Shape(columns=("id", "zip")), "columns names column zip, which the rows don't have"),
    ],
)
def test_a_shape_that_does_not_fit_refuses_the_target(
    shape: Shape, said: str, tmp_path: Path
) -> None:
    """By name, and nothing is staged."""
    store = SqliteStore(tmp_path / "sink.db")
    source, flow = Source(False), Flow(route_of(shape), tmp_path, lambda: TargetWriter(store))
    row = {"n": 1, "phone": "1", "note": "x"}
    bring(flow, source, [Change("I", 1, 1, row, ())], [])
    assert flow.refused is not None
    assert said in flow.refused
    assert flow.state.schema is None
    store.close()
