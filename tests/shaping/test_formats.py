"""Targets of shaped routes equal the shape of the source's table, whatever format tells of it."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from changes.model.errors import TargetRefused
from changes.model.model import Mode
from changes.routes.shaping.shape import Shape
from sparkwriter.kit.writer import TargetWriter
from sparkwriter.sqlite.store import SqliteStore
from tests.shaping.formats import (
    TYPES,
    WRITES,
    Told,
    Write,
    debezium_keys_alone,
    debezium_toast,
    upsert,
    upsert_without_nulls,
)
from tests.shaping.rig import Change, Flow, Row, bring_messages, changes, route_of
from tests.shaping.test_filters import COMPUTED, FILTERS, shown
from tests.shaping.test_partial_streams import busy


def brought(
    shape: Shape, mode: Mode, name: str, values: list[bytes], cuts: list[int]
) -> tuple[Flow, list[Row]]:
    """The flow at its end, and the target's rows."""
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder) / "sink.db")
        route = replace(route_of(shape, mode), types=TYPES)
        flow = Flow(route, Path(folder), lambda: TargetWriter(store), format=name)
        bring_messages(flow, values, cuts)
        rows = [] if flow.state.schema is None else store.read(flow.route.name).to_pylist()
        store.close()
        return flow, rows


@pytest.mark.parametrize(
    ("name", "write"),
    [*WRITES.items(), ("debezium-json", debezium_keys_alone), ("upsert-json", upsert)],
)
@settings(max_examples=25)
@given(
    st.sampled_from(["", *FILTERS]),
    st.lists(st.sampled_from(list(COMPUTED)), unique=True),
    changes(),
    st.lists(st.integers(0, 6), max_size=6),
)
def test_the_target_is_what_passes(
    name: str,
    write: Write,
    condition: str,
    computed: list[tuple[str, str]],
    made: list[Change],
    cuts: list[int],
) -> None:
    """Rows enter, leave and move; the image before is not needed for that."""
    shape = Shape(filter=condition, computed=tuple(computed), rename=(("id", "key"),))
    source = Told(write)
    values = [value for change in made for value in source.messages(change)]
    flow, rows = brought(shape, Mode.UPSERT, name, values, cuts)
    assert flow.refused is None
    assert sorted(rows, key=repr) == sorted(shown(shape, source.rows), key=repr)


FULL = Change("I", 6, 6, {"n": 1, "phone": "12345", "note": "x"}, ())
EMPTIED = [Change("U", 6, 6, {"n": 1, "phone": None, "note": "x"}, ("phone",))]


@example(False, EMPTIED, [0])
@example(True, EMPTIED, [0])
@settings(max_examples=50)
@given(st.booleans(), changes(), st.lists(st.integers(0, 6), max_size=6))
def test_nulls_that_are_left_out(masked: bool, made: list[Change], cuts: list[int]) -> None:
    """No stored value outlives them: not where another process goes on, nor behind a mask."""
    masks = (("note", "redact"), ("phone", "redact")) if masked else ()
    source = Told(upsert_without_nulls)
    values = [value for change in [FULL, *made] for value in source.messages(change)]
    shape = Shape(masks=masks, rename=(("n", "m"),))
    flow, rows = brought(shape, Mode.UPSERT, "upsert-json", values, cuts)
    assert flow.refused is None

    def shown_as(name: str, value: object) -> object:
        return "***" if masked and name in ("note", "phone") and value is not None else value

    found = {row["id"]: (row["m"], row["phone"], row["note"]) for row in rows}
    assert found == {
        key: tuple(shown_as(name, row[name]) for name in ("n", "phone", "note"))
        for key, row in source.rows.items()
    }


NULLS: Row = {"n": None, "phone": None, "note": None}
FIRST_OF_ALL = [
    Change("I", 0, 0, {**NULLS, "note": "x"}, ()),
    Change("D", 0, 0, NULLS, ("n",)),
]
MOVED_AWAY = [*(Change("I", n, n, {**NULLS, "note": "x"}, ()) for n in range(3)),
              Change("M", 0, 3, NULLS, ("n",))]  # fmt: skip
"""Its old key goes by a delete."""


@example("n IS NULL OR phone LIKE '1%'", FIRST_OF_ALL, [0])
@example("n > 0", MOVED_AWAY, [0])
@settings(max_examples=60)
@given(st.sampled_from(list(FILTERS)), busy(), st.lists(st.integers(0, 6), min_size=1, max_size=6))
def test_large_values_that_are_not_sent(
    condition: str, made: list[Change], cuts: list[int]
) -> None:
    """The stored row has them. A row that enters without is refused, as is one that is deleted
    under a key that may not have been sent; else none is."""
    source, entering, values = Told(debezium_toast), False, list[bytes]()
    unsure = any(change.kind in ("D", "M") and change.key == 0 for change in made)
    for change in made:
        before = {key: {"id": key, **row} for key, row in source.rows.items()}
        values += source.messages(change)
        for key, row in source.rows.items():
            was = before.get(key)
            if was is not None and was["note"] == row["note"] and not FILTERS[condition](was):
                entering |= was != {"id": key, **row}
    shape = Shape(filter=condition, rename=(("id", "key"),))
    found, refused = list[Row](), ""
    try:
        flow, found = brought(shape, Mode.UPSERT, "debezium-json", values, cuts)
        refused = flow.refused or ""
    except TargetRefused as error:
        refused = str(error)
    if "REPLICA IDENTITY USING INDEX" in refused:
        assert unsure
    elif refused:
        assert "rows come without column note" in refused
        assert entering
    else:
        assert sorted(found, key=repr) == sorted(shown(shape, source.rows), key=repr)


@pytest.mark.parametrize("name", WRITES)
@settings(max_examples=25)
@given(st.sampled_from(list(FILTERS)), changes(), st.lists(st.integers(0, 6), max_size=6))
def test_a_changelog_has_what_passes_before_or_after(
    name: str, condition: str, made: list[Change], cuts: list[int]
) -> None:
    """As many changes as the rows say, each with the row as it is shown."""
    passes, expected = FILTERS[condition], list[dict[str, Any]]()

    def write(op: str, was: Row | None, now: Row | None) -> list[bytes]:
        parts = [(op, was, now)]
        if name == "debezium-json" and was and now and was["id"] != now["id"]:
            parts = [("D", was, None), ("I", None, now)]
        for letter, old, new in parts:
            if any(row is not None and passes(row) for row in (old, new)):
                expected.append({"_op": letter, **(new or old or {})})
        return WRITES[name](op, was, now)

    source = Told(write)
    values = [value for change in made for value in source.messages(change)]
    flow, rows = brought(Shape(filter=condition), Mode.APPEND, name, values, cuts)
    assert flow.refused is None
    names = ("_op", "id", "n", "phone", "note")
    found = sorted(rows, key=lambda row: row["_offset"])
    assert [{column: row[column] for column in names} for row in found] == expected


@pytest.mark.parametrize(
    ("name", "write"), [("debezium-json", debezium_keys_alone), ("upsert-json", upsert)]
)
def test_keys_alone_are_no_image_before(name: str, write: Write) -> None:
    """An update that does not pass may have passed before: the target is refused, by name."""
    source = Told(write)
    row = {"n": 1, "phone": "1", "note": "x"}
    made = [Change("I", 1, 1, row, ()), Change("U", 1, 1, {**row, "n": -1}, ("n",))]
    values = [value for change in made for value in source.messages(change)]
    flow, _ = brought(Shape(filter="n > 0"), Mode.APPEND, name, values, [])
    assert flow.refused is not None
    assert "filter: a change comes without column n" in flow.refused
