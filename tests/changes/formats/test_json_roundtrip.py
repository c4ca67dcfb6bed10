"""Rows written as Maxwell and GoldenGate write them come back equal, in every grouping."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from changes.model.model import OP, Mode
from changes.routes.fold import fold
from tests.changes.formats.json_messages import Number, made, maxwell, ogg

NAMES = st.sampled_from(["a", "B_c", "d", "é", 'q"'])
DECIMALS = st.decimals(allow_nan=False, allow_infinity=False, places=4).map(
    lambda value: Number(f"{value:f}")
)
SCALARS = (
    st.none()
    | st.integers(-(2**70), 2**70)
    | DECIMALS
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
)
DOCUMENTS = st.sampled_from([Number('{"x": [1.0, "é"]}'), Number("[]"), Number('["a","b"]')])
IMAGES = st.dictionaries(NAMES, SCALARS | DOCUMENTS, max_size=5)
CHANGES = st.lists(st.tuples(st.sampled_from("IUD"), st.integers(1, 4), IMAGES), min_size=1)


def as_text(value: object) -> str | None:
    return None if value is None else str(value)


@pytest.mark.parametrize("name", ["maxwell-json", "ogg-json"])
@settings(max_examples=60)
@given(rows=st.lists(IMAGES, min_size=1, max_size=8))
def test_values_come_back(name: str, rows: list[dict[str, Any]]) -> None:
    """Every value is the text that was written, digit by digit; nulls are null."""
    keyed = [{"id": n} | row for n, row in enumerate(rows)]
    values = [maxwell(data=row) if name == "maxwell-json" else ogg("I", row) for row in keyed]
    changes = made(name).table_decoder(Mode.UPSERT, None).decode(0, range(len(rows)), values)
    assert changes is not None
    for row, told in zip(changes.table.to_pylist(), keyed, strict=True):
        assert {column: row[column] for column in told} == {
            column: as_text(value) for column, value in told.items()
        }


def encoded(name: str, op: str, image: dict[str, Any]) -> bytes:
    if name == "maxwell-json":
        return maxwell({"I": "insert", "U": "update", "D": "delete"}[op], image)
    before = {"id": image["id"]}
    return ogg(op, None if op == "D" else image, None if op == "I" else before)


@pytest.mark.parametrize("name", ["maxwell-json", "ogg-json"])
@settings(max_examples=60)
@given(changes=CHANGES, size=st.integers(1, 30))
def test_net_changes_follow_a_model(
    name: str, changes: list[tuple[str, int, dict[str, Any]]], size: int
) -> None:
    """Whatever is inserted, updated in part and deleted, the end is what a dictionary says."""
    wanted: dict[str, dict[str, Any] | None] = {}
    values = []
    for op, key, image in changes:
        values.append(encoded(name, op, {"id": key} | image))
        before = wanted.get(str(key)) if op == "U" else None
        told = {column: as_text(value) for column, value in image.items()}
        wanted[str(key)] = None if op == "D" else (before or {}) | told
    decoder = made(name).table_decoder(Mode.UPSERT, None)
    found: dict[str, dict[str, Any] | None] = {}
    for start in range(0, len(values), size):
        part = values[start : start + size]
        decoded = decoder.decode(0, range(len(part)), part)
        assert decoded is not None
        for row in fold(decoded.table, ("id",)).to_pylist():
            key = row["id"]
            carried = {
                column: value
                for column, value in row.items()
                if column not in ("id", OP)
                and not column.startswith("__binlogd")
                and row.get(f"__binlogd_has_{column}", True)
            }
            found[key] = None if row[OP] == "D" else (found.get(key) or {}) | carried
    assert found.keys() == wanted.keys()
    for key, told_row in wanted.items():
        row = found[key]
        assert (row is None) == (told_row is None)
        if row is not None and told_row is not None:
            assert {column: row.get(column) for column in told_row} == told_row
