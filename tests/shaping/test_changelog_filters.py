"""A filtered changelog has the changes whose row passes before or after them."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from changes.model.model import Mode
from changes.routes.shaping.shape import Shape
from sparkwriter.kit.writer import TargetWriter
from sparkwriter.sqlite.store import SqliteStore
from tests.shaping.rig import Change, Flow, Row, Source, bring_messages, changes, route_of
from tests.shaping.test_filters import FILTERS


class Watched(Source):
    """The table at the source, and what a changelog of what passes is to show."""

    def __init__(self, condition: str) -> None:
        super().__init__(minimal=False)
        self.kept: list[Row] = []
        self._passes = FILTERS[condition]
        self._count = 0

    def message(self, change: Change) -> bytes | None:
        before = {key: {"id": key, **row} for key, row in self.rows.items()}
        message = super().message(change)
        if message is None:
            return None
        after = {key: {"id": key, **row} for key, row in self.rows.items()}
        was = before[change.key] if change.kind != "I" else None
        if change.kind in "ID":
            now = after.get(change.key)
        else:
            left = change.kind == "M" and change.new not in before
            now = after[change.new if left else change.key]
        op = {"I": "I", "D": "D"}.get(change.kind, "U")
        if any(row is not None and self._passes(row) for row in (was, now)):
            shown = was if now is None else now
            assert shown is not None
            self.kept.append({"_op": op, "_offset": self._count, **shown})
        self._count += 1
        return message


@given(st.sampled_from(list(FILTERS)), changes(), st.lists(st.integers(0, 6), max_size=6))
def test_a_change_is_kept_where_its_row_passes_before_or_after(
    condition: str, made: list[Change], cuts: list[int]
) -> None:
    """The change by which a row leaves is there, the ones after it are not."""
    source = Watched(condition)
    values = [value for change in made if (value := source.message(change)) is not None]
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder) / "sink.db")
        route = route_of(Shape(filter=condition), Mode.APPEND)
        flow = Flow(route, Path(folder), lambda: TargetWriter(store))
        bring_messages(flow, values, cuts)
        assert flow.refused is None
        rows = [] if flow.state.schema is None else store.read(flow.route.name).to_pylist()
        names = ("_op", "_offset", "id", "n", "phone", "note")
        found = [{name: row[name] for name in names} for row in rows]
        assert sorted(found, key=lambda row: row["_offset"]) == source.kept
        store.close()


def test_images_that_lack_the_column_refuse_the_target(tmp_path: Path) -> None:
    """A NULL that the message did not carry is not taken for the row's."""
    store = SqliteStore(tmp_path / "sink.db")
    source = Source(minimal=True)
    row = {"n": 1, "phone": "1", "note": "x"}
    made = [Change("I", 1, 1, row, ()), Change("U", 1, 1, {**row, "phone": "2"}, ("phone",))]
    values = [value for change in made if (value := source.message(change)) is not None]
    route = route_of(Shape(filter="n IS NULL"), Mode.APPEND)
    flow = Flow(route, tmp_path, lambda: TargetWriter(store))
    bring_messages(flow, values, [])
    assert flow.refused is not None
    assert "filter: a change comes without column n" in flow.refused
    store.close()
