"""Each version of a row stays, with its times; whatever the images, batches and members."""

from __future__ import annotations

import datetime
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from changes.model.errors import TargetRefused
from changes.routes.shaping.shape import Shape
from offsets.snapshot import MarkMoves
from sparkwriter.kit.writer import TargetWriter
from sparkwriter.sqlite.store import SqliteStore
from tests.shaping.rig import SOURCE, Change, Flow, Row, Source, bring, changes, route_of
from tests.shaping.test_filters import FILTERS

ROW: Row = {"n": 1, "phone": "1", "note": "x"}


def at(seconds: int) -> datetime.datetime:
    """When a change happened."""
    return datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(seconds=seconds)


class Versions(Source):
    """A source that keeps each version of its rows."""

    def __init__(self, minimal: bool) -> None:
        super().__init__(minimal)
        self.ended: list[dict[str, Any]] = []
        self.since: dict[int, int] = {}

    def message(self, change: Change) -> bytes | None:
        before = {key: dict(row) for key, row in self.rows.items()}
        made = super().message(change)
        if made is None:
            return None
        now, offset = self.clock_s, self.clock_s - 1
        touched = {change.key, *(self.rows.keys() - before.keys())}
        for key in touched & before.keys():
            since = self.since.pop(key)
            self.ended.append(version(key, before[key], since, now, f"0:{offset}:0"))
        for key in touched & self.rows.keys():
            self.since[key] = now
        return made

    def versions(self) -> list[dict[str, Any]]:
        """All of them, the present ones last."""
        present = (version(key, row, self.since[key]) for key, row in self.rows.items())
        return [*self.ended, *present]


def identity(row: dict[str, Any]) -> tuple[int, str]:
    """What tells versions apart."""
    return row["id"], row["_ended_at"]


def version(
    key: int, row: Row, since: int, until: int | None = None, place: str = ""
) -> dict[str, Any]:
    """As the target shows it."""
    return {
        "id": key,
        **{("tel" if name == "phone" else name): value for name, value in row.items()},
        "_valid_from": at(since),
        "_valid_to": None if until is None else at(until),
        "_is_current": until is None,
        "_ended_at": place,
    }


@given(st.booleans(), changes(), st.lists(st.integers(0, 6), max_size=6))
def test_the_target_has_each_version_once(
    minimal: bool, made: list[Change], cuts: list[int]
) -> None:
    """Keys move, rows are deleted and recreated; a write is repeated; columns are renamed."""
    shape = Shape(history=True, rename=(("phone", "tel"),))
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder) / "sink.db")
        source = Versions(minimal)
        flow = Flow(route_of(shape), Path(folder), lambda: TargetWriter(store))
        bring(flow, source, made, cuts)
        assert flow.refused is None
        found = [] if flow.state.schema is None else store.read(flow.route.name).to_pylist()
        assert sorted(found, key=identity) == sorted(source.versions(), key=identity)
        store.close()


def test_of_a_row_that_was_there_before_the_end_is_known(tmp_path: Path) -> None:
    """The version that the first change ended."""
    source = Source(minimal=False)
    source.rows[7] = dict(ROW)
    store = SqliteStore(tmp_path / "sink.db")
    flow = Flow(route_of(Shape(history=True)), tmp_path, lambda: TargetWriter(store))
    bring(flow, source, [Change("U", 7, 7, {**ROW, "n": 2}, ("n",))], [])
    shown = store.read(flow.route.name)
    rows = shown.select(["n", "_valid_from", "_valid_to", "_ended_at"]).to_pylist()
    assert sorted((tuple(row.values()) for row in rows), key=repr) == [
        (2, at(1), None, ""),
        (None, None, at(1), "0:0:0"),
    ]
    store.close()


def test_a_history_is_not_written_twice(tmp_path: Path) -> None:
    """Marks that are lowered would have old changes end the versions of now."""
    store = SqliteStore(tmp_path / "sink.db")
    writer = TargetWriter(store)
    flow = Flow(route_of(Shape(history=True)), tmp_path, lambda: writer)
    bring(flow, Source(minimal=False), [Change("I", 1, 1, ROW, ())], [])
    with pytest.raises(TargetRefused, match="keeps the history of its rows"):
        writer.reset(flow.route.name, MarkMoves({SOURCE: -1}))
    store.close()


def test_what_does_not_go_with_a_history_is_named() -> None:
    with pytest.raises(ValueError, match=r"history and .* contradict each other"):
        Shape(history=True, delete="soft")


class Passing(Versions):
    """A source that keeps each version of the rows that pass."""

    def __init__(self, condition: str) -> None:
        super().__init__(minimal=False)
        self._passes = FILTERS[condition]

    def message(self, change: Change) -> bytes | None:
        before = self._passing()
        made = Source.message(self, change)
        if made is None:
            return None
        now, offset, after = self.clock_s, self.clock_s - 1, self._passing()
        touched = {change.key} | (after.keys() - before.keys())
        for key in touched & before.keys():
            since = self.since.pop(key)
            self.ended.append(version(key, before[key], since, now, f"0:{offset}:0"))
        for key in touched & after.keys():
            self.since[key] = now
        return made

    def _passing(self) -> dict[int, Row]:
        rows = ((key, dict(row)) for key, row in self.rows.items())
        return {key: row for key, row in rows if self._passes({"id": key, **row})}

    def versions(self) -> list[dict[str, Any]]:
        present = self._passing().items()
        return [*self.ended, *(version(key, row, self.since[key]) for key, row in present)]


@given(st.sampled_from(list(FILTERS)), changes(), st.lists(st.integers(0, 6), max_size=6))
def test_a_filtered_history_has_each_version_that_passed(
    condition: str, made: list[Change], cuts: list[int]
) -> None:
    """A row that enters begins one, one that leaves ends it; nothing in between is told."""
    shape = Shape(history=True, filter=condition, rename=(("phone", "tel"),))
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder) / "sink.db")
        source = Passing(condition)
        flow = Flow(route_of(shape), Path(folder), lambda: TargetWriter(store))
        bring(flow, source, made, cuts)
        assert flow.refused is None
        found = [] if flow.state.schema is None else store.read(flow.route.name).to_pylist()
        assert sorted(found, key=identity) == sorted(source.versions(), key=identity)
        store.close()


def test_when_a_change_happened_may_be_shown(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "sink.db")
    flow = Flow(route_of(Shape(metadata=("_source_ts",))), tmp_path, lambda: TargetWriter(store))
    bring(flow, Source(minimal=False), [Change("I", 1, 1, ROW, ()), Change("I", 2, 2, ROW, ())], [])
    assert sorted(store.read(flow.route.name)["_source_ts"].to_pylist()) == [at(1), at(2)]
    store.close()
