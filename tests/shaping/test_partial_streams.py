"""Random streams of partial images under a filter: equal, or refused by name."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from changes.model.errors import TargetRefused
from changes.routes.shaping.shape import Shape
from sparkwriter.kit.writer import TargetWriter
from sparkwriter.sqlite.store import SqliteStore
from tests.shaping.rig import Change, Flow, Row, Rows, Source, bring_messages, route_of
from tests.shaping.test_filters import without

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


@given(busy(), st.lists(st.integers(0, 6), min_size=1, max_size=6), st.integers(0, 16))
def test_whole_rows_of_before_and_after_a_column_are_never_refused(
    made: list[Change], cuts: list[int], new: int
) -> None:
    """It comes with the rows alone, in the midst of a batch or between two. Those of before have
    NULL there until they change again. A delete alone does not show it: every one has all."""
    source, values, changed = Source(minimal=False), list[bytes](), dict[int, int]()
    shows = False
    for change in made:
        before = {key: dict(row) for key, row in source.rows.items()}
        value = source.message(change)
        if value is not None:
            changed |= {key: len(values) for key, row in source.rows.items()
                        if before.get(key) != row or key == change.key}  # fmt: skip
            shows = shows or (len(values) >= new and change.kind != "D")
            values.append(value if shows else without(value, "note"))
    shape = Shape(filter="n > 0", rename=(("id", "key"), ("n", "m")))
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder) / "sink.db")
        store._connection.execute("PRAGMA synchronous = off")
        flow = Flow(route_of(shape), Path(folder), lambda: TargetWriter(store))
        bring_messages(flow, values, cuts)
        assert flow.refused is None
        rows = {
            key: row if changed[key] >= new else {**row, "note": None}
            for key, row in source.rows.items()
        }
        found = ({"note": None, **row} for row in store.read(flow.route.name).to_pylist())
        wanted = (
            {"note": row["note"], "key": key, "m": row["n"], "phone": row["phone"]}
            for key, row in rows.items()
            if FILTERS["n > 0"][1](row)
        )
        assert ordered(found) == ordered(wanted)
        store.close()


def ordered(rows: Iterable[Row]) -> list[Row]:
    """Rows to compare."""
    return sorted((dict(sorted(row.items())) for row in rows), key=repr)
