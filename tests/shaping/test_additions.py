"""Deleted rows that stay, and where rows come from: both as the last change of each key says."""

from __future__ import annotations

import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from changes.routes.shaping.shape import Shape
from sparkwriter.kit.writer import TargetWriter
from sparkwriter.sqlite.store import SqliteStore
from tests.shaping.rig import Change, Flow, Row, Source, bring, changes, route_of

ROW: Row = {"n": 1, "phone": "1", "note": "x"}


class Remembering(Source):
    """A source that knows what became of each key."""

    def __init__(self, minimal: bool) -> None:
        super().__init__(minimal)
        self.gone: dict[int, Row] = {}
        self.last: dict[int, tuple[str, int]] = {}
        self._offset = 0

    def message(self, change: Change) -> bytes | None:
        before = dict(self.rows)
        made = super().message(change)
        if made is None:
            return None
        for key in before.keys() - self.rows.keys():
            self.gone[key] = before[key]
            self.last[key] = ("D", self._offset)
        for key in self.rows:
            if key not in before:
                letter = "I" if change.kind == "I" else "U"
                self.last[key] = (letter, self._offset)
                self.gone.pop(key, None)
            elif key == change.key:
                self.last[key] = ("U", self._offset)
        self._offset += 1
        return made


@given(
    st.booleans(), st.booleans(), st.booleans(), changes(), st.lists(st.integers(0, 6), max_size=6)
)
def test_the_target_tells_the_last_change_of_each_key(
    soft: bool, told: bool, minimal: bool, made: list[Change], cuts: list[int]
) -> None:
    """Rows enter again after they were deleted, keys move away and back, images are partial."""
    metadata = ("_op", "_offset", "_partition") if told else ()
    shape = Shape(
        delete="soft" if soft else "hard",
        metadata=metadata,
        masks=(("phone", "redact"),),
        rename=(("id", "key"),),
    )
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder) / "sink.db")
        source = Remembering(minimal)
        flow = Flow(route_of(shape), Path(folder), lambda: TargetWriter(store))
        bring(flow, source, made, cuts)
        assert flow.refused is None
        rows = {**source.rows, **(source.gone if soft else {})}
        wanted = [shown(key, row, source, soft, told) for key, row in rows.items()]
        found = [] if flow.state.schema is None else store.read(flow.route.name).to_pylist()
        assert sorted(found, key=repr) == sorted(wanted, key=repr)
        store.close()


def shown(key: int, row: Row, source: Remembering, soft: bool, told: bool) -> dict[str, Any]:
    """What the target is to say of a key."""
    found = {"key": key, **row, "phone": None if row["phone"] is None else "***"}
    if soft:
        found["_DELETED"] = key in source.gone
    if told:
        op, offset = source.last[key]
        found |= {"_op": op, "_offset": offset, "_partition_number": 0}
    return found


def test_when_a_change_was_decoded(tmp_path: Path) -> None:
    """By the clock of whoever decodes it; a row keeps that of its last change."""
    source, store = Source(minimal=True), SqliteStore(tmp_path / "sink.db")
    flow = Flow(route_of(Shape(metadata=("_ts",))), tmp_path, lambda: TargetWriter(store))
    made = [Change("I", 1, 1, ROW, ()), Change("I", 2, 2, ROW, ()), Change("U", 2, 2, ROW, ("n",))]
    values = [source.message(change) for change in made]
    for at, value in enumerate(values):
        assert value is not None
        flow.now_s = 1700000000.25 + at
        flow.write(at, [value])
    found = {row["id"]: row["_ts"] for row in store.read(flow.route.name).to_pylist()}
    begin = datetime(2023, 11, 14, 22, 13, 20, 250_000, UTC)
    assert found == {1: begin, 2: begin + timedelta(seconds=2)}
    store.close()


def test_a_row_that_was_never_seen_is_deleted_by_its_key(tmp_path: Path) -> None:
    """Its other columns are unknown."""
    source = Source(minimal=False)
    source.rows[7] = dict(ROW)
    store = SqliteStore(tmp_path / "sink.db")
    flow = Flow(route_of(Shape(delete="soft")), tmp_path, lambda: TargetWriter(store))
    bring(flow, source, [Change("D", 7, 7, ROW, ())], [])
    assert store.read(flow.route.name).to_pylist() == [
        {"id": 7, "n": None, "phone": None, "note": None, "_DELETED": True}
    ]
    store.close()


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"delete": "soft", "filter": "n > 0"}, "contradict each other"),
        (
            {"metadata": ("_at",)},
            "metadata: _at is unknown; allowed: _op, _ts, _source_ts, _partition",
        ),
        ({"metadata": ("_op", "_op")}, "metadata: column _op is there twice"),
    ],
)
def test_what_does_not_go_together_is_named(said: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Shape(**said)


def test_a_position_needs_one(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "sink.db")
    shape = Shape(metadata=("_position",))
    flow = Flow(route_of(shape), tmp_path, lambda: TargetWriter(store))
    bring(flow, Source(minimal=False), [Change("I", 1, 1, ROW, ())], [])
    assert flow.refused is not None
    assert "only where positions are configured" in flow.refused
    store.close()
