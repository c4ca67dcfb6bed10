"""Values as MySQL holds them, written as Canal writes them, come back equal."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from changes.formats.canal.json import CanalJson
from changes.model.model import OP, FormatOptions, Mode
from tests.changes.formats.canal.messages import decode, message

MOMENTS = st.datetimes(datetime(1000, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999))

COLUMNS: dict[str, tuple[str, st.SearchStrategy[Any]]] = {
    "t": ("tinyint(4)", st.integers(-128, 127)),
    "i": ("int(10) unsigned", st.integers(0, 2**32 - 1)),
    "b": ("bigint(20)", st.integers(-(2**63), 2**63 - 1)),
    "u": ("bigint(20) unsigned", st.integers(0, 2**64 - 1).map(Decimal)),
    "d": ("decimal(20,6)", st.decimals(-(10**13), 10**13, places=6)),
    "f": ("float", st.floats(width=32, allow_nan=False, allow_infinity=False)),
    "g": ("double", st.floats(allow_nan=False, allow_infinity=False)),
    "s": ("varchar(99)", st.text(max_size=20)),
    "y": ("date", st.dates(date(1000, 1, 1))),
    "m": ("datetime(6)", MOMENTS),
    "z": ("timestamp(6)", MOMENTS.map(lambda moment: moment.replace(tzinfo=UTC))),
}
TYPES = {"id": "int"} | {name: kind for name, (kind, _) in COLUMNS.items()}
ROWS = st.lists(
    st.fixed_dictionaries({name: st.none() | values for name, (_, values) in COLUMNS.items()}),
    min_size=1,
    max_size=8,
)


def as_text(value: object) -> str | None:
    """A value as Canal prints it; Java's timestamps always have a fraction."""
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat(" ", "microseconds")
    if isinstance(value, Decimal):
        return f"{value:f}"
    return None if value is None else str(value)


@settings(max_examples=100)
@given(ROWS, st.integers(1, 4))
def test_values_come_back(rows: list[dict[str, Any]], per_message: int) -> None:
    """Every value of every type is equal after the way through Canal JSON, nulls included."""
    keyed = [{"id": place} | row for place, row in enumerate(rows)]
    texts = [{name: as_text(value) for name, value in row.items()} for row in keyed]
    values = [
        message(data=texts[start : start + per_message], types=TYPES)
        for start in range(0, len(texts), per_message)
    ]
    assert decode(*values).table.to_pylist() == [{OP: "U"} | row for row in keyed]


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["INSERT", "UPDATE", "DELETE"]),
            st.sets(st.sampled_from("abc")),
            st.booleans(),
        ),
        min_size=1,
        max_size=20,
    ),
    st.integers(1, 20),
)
def test_calls_of_any_size_tell_the_same(
    shapes: list[tuple[str, set[str], bool]], size: int
) -> None:
    """However the records are cut into calls, and whatever they carry, the rows are the same."""
    values = [
        message(
            kind,
            [{"id": n if typed else str(n)} | {name: str(n) for name in sorted(names)}],
            types={"id": "int"} | dict.fromkeys(sorted(names), "bigint"),
        )
        for n, (kind, names, typed) in enumerate(shapes)
    ]
    decoder = CanalJson(FormatOptions()).table_decoder(Mode.UPSERT, None)
    rows: list[dict[str, Any]] = []
    for start in range(0, len(values), size):
        part = values[start : start + size]
        changes = decoder.decode(0, range(len(part)), part)
        assert changes is not None
        assert all(f.type == pa.int64() for f in changes.table.schema if f.name in "abc")
        rows += changes.table.to_pylist()
    for n, (row, (kind, names, _)) in enumerate(zip(rows, shapes, strict=True)):
        assert (row[OP], row["id"]) == ("D" if kind == "DELETE" else "U", n)
        for name in "abc":
            carried = name in names and kind != "DELETE"
            assert row.get(name) == (n if carried else None)
