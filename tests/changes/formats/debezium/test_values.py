"""Values of every semantic type beside others: types in the lake, types that change, NaN."""

from __future__ import annotations

from datetime import date
from typing import Any

import pyarrow as pa
import pytest

from changes.model.model import OP
from tests.changes.formats.debezium.messages import (
    FORMAT,
    column,
    decode,
    record,
    rows,
    typed,
)
from tests.changes.formats.debezium.values import INFINITE, TIME, VALUES, value


@pytest.mark.parametrize(("kind", "given", "arrow", "kept"), VALUES, ids=lambda v: str(v)[:40])
def test_every_type(kind: Any, given: Any, arrow: pa.DataType, kept: Any) -> None:
    """The lake's type; people are shown a 32-bit number by its shortest digits."""
    assert column(kind, given).type == arrow
    (told,) = FORMAT.explain(*value(kind, given))
    assert told.after["v"] == (given if arrow == pa.float32() else kept)  # type: ignore[union-attr, index]


@pytest.mark.parametrize(("kind", "given"), INFINITE, ids=str)
def test_infinite_dates(kind: Any, given: Any) -> None:
    """What is null for want of a date is counted."""
    assert decode(*value(kind, given)).nulled == 1


def test_nan() -> None:
    """As a bare word, which JSON does not have, or as text; it equals nothing, so it is no case."""
    assert repr(column("float", float("nan"), "NaN").to_pylist()) == "[nan, nan]"
    value = typed("c", {"id": "int32", "v": "double"}, {"id": 1, "v": float("nan")})
    assert FORMAT.peek(value).table is not None
    (told,) = FORMAT.explain(value)
    assert str(told.after["v"]) == "nan"  # type: ignore[union-attr, index]


def test_words_in_text_are_left_alone() -> None:
    """NaN inside of a string is text."""
    fields = {"id": "int32", "v": "double", "t": "string"}
    row = {"id": 1, "v": float("nan"), "t": 'a NaN "Infinity" \\'}
    assert rows(typed("c", fields, row))[0]["t"] == row["t"]


def test_a_record_without_schema_among_others() -> None:
    """Its values are read by the types that are known."""
    fields = {"id": "int32", "v": ("int32", f"{TIME}Date")}
    bare = record(
        {"op": "c", "source": {"db": "shop", "table": "orders"}, "after": {"id": 2, "v": 2}},
        {"id": 2},
    )
    found = rows(typed("c", fields, {"id": 1, "v": 1}), bare)
    assert [row["v"] for row in found] == [date(1970, 1, 2), date(1970, 1, 3)]
    assert found[1][OP] == "U"
