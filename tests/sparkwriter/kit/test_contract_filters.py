"""What each sink does with rows that lack columns, under a filter: it is asked what it stores."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from changes.model.errors import LostRace, TargetRefused
from changes.model.model import (
    FROM,
    FROM_PREFIX,
    LEFT,
    OP,
    AddColumn,
    Column,
    RenameColumn,
    TableSchema,
)
from changes.routes.shaping.partial import RowFilter
from sparkwriter.kit.store import FOUND, Absent, Facts
from sparkwriter.kit.writer import TargetWriter

POSITIVE = RowFilter("n > 0", (("n", "n"),))


@pytest.fixture
def writer(sink) -> TargetWriter[Any]:
    """One member."""
    return TargetWriter(sink.store())


@pytest.fixture
def table(writer, staging, orders) -> Any:
    """A table of rows that pass, its mark at 1."""
    writer.write(staging.batch(orders(*(("U", key, f"note {key}", key) for key in (1, 2, 3))), 1))
    return staging


def part(*rows: tuple[str, int, str | None, int | None, int | None]) -> pa.Table:
    """Rows of (op, id, note, n, the old key): what is None is lacking, NULL where deleted."""
    ops, ids, notes, numbers, olds = zip(*rows, strict=True)
    moved = {
        FROM: pa.array([None if old is None else 0 for old in olds], pa.int64()),
        FROM_PREFIX + "id": pa.array(olds, pa.int64()),
    }
    return pa.table(
        {
            OP: list(ops),
            "id": pa.array(ids, pa.int64()),
            "note": pa.array(notes, pa.string()),
            "__binlogd_has_note": [
                op == "D" or note is not None for op, note in zip(ops, notes, strict=True)
            ],
            "n": pa.array(numbers, pa.int32()),
            "__binlogd_has_n": [
                op == "D" or n is not None for op, n in zip(ops, numbers, strict=True)
            ],
            **(moved if any(old is not None for old in olds) else {}),
        }
    )


def batch(staging, *rows: Any, through: int = 2) -> Any:
    made = staging.batch(part(*rows), through, partial=["note", "n"])
    return replace(made, filter=POSITIVE)


def test_what_is_stored_decides(writer, table, rows) -> None:
    """Stays, leaves, is not there and stays so; a row that is left out is a delete."""
    made = batch(
        table,
        ("U", 1, "new", None, None),
        ("U", 2, None, -2, None),
        ("U", 7, "seven", None, None),
        (LEFT, 3, "left", -3, None),
    )
    writer.write(made)
    assert rows(table.target) == [(1, "new", 1)]
    assert writer.write(made).covered


def test_rows_that_came_from_another_key(writer, table, rows) -> None:
    """The old key's row has the rest."""
    writer.write(batch(table, ("D", 1, None, None, None), ("U", 5, None, None, 1)))
    assert rows(table.target) == [(2, "note 2", 2), (3, "note 3", 3), (5, "note 1", 1)]


@pytest.mark.parametrize(
    "row",
    [("U", 7, None, 7, None), ("U", 7, "new", None, 8), ("U", 3, "new", None, 8)],
    ids=["enters", "moves from nowhere", "moves to where another one was"],
)
def test_a_row_that_enters_must_be_whole(row: Any, writer, table, rows) -> None:
    """Nothing of the batch is written."""
    with pytest.raises(TargetRefused, match="rows come without column n"):
        writer.write(batch(table, ("U", 1, None, -1, None), row))
    assert len(rows(table.target)) == 3


def test_whoever_is_overtaken_between_look_and_write_loses(sink, table, orders) -> None:
    """What was read is then of another version."""
    store = sink.store()
    seen = store.look(table.target)
    assert not isinstance(seen, Absent)
    keys = pa.table({"id": pa.array([1], pa.int64())})
    assert store.read_rows(seen, keys, ["n"])["n"].to_pylist() == [1]
    TargetWriter(sink.store()).write(table.batch(orders(("U", 1, "a", -1)), 2))
    late = replace(table.batch(orders(("U", 1, "b", 1)), 3, after=1))
    with pytest.raises(LostRace):
        store.publish(seen, late, Facts(seen.marks.after(late), None, None, ""))


KEYS: dict[str, tuple[pa.DataType, list[Any], Any]] = {
    "text": (pa.string(), ["a", "ä' \\", "", "A"], "a "),
    "decimal": (pa.decimal128(20, 4), [Decimal("1.5000"), Decimal("-7.0001")], Decimal("1.5001")),
    "timestamp": (
        pa.timestamp("us"),
        [datetime(2024, 2, 29, 1, 2, 3, 4), datetime(1969, 12, 31)],
        datetime(2024, 2, 29, 1, 2, 3, 5),
    ),
    "date": (pa.date32(), [date(2024, 2, 29), date(1, 1, 1)], date(2024, 3, 1)),
    "bytes": (pa.binary(), [b"", b"\0\xff", b"a"], b"b"),
    "null": (pa.int64(), [None, 0], 1),
}


@pytest.mark.parametrize("kind", list(KEYS))
def test_stored_rows_come_in_the_order_of_the_keys(kind: str, sink, staging) -> None:
    """Each as it was written, whatever the key's type; twice where it is asked twice."""
    type_, values, other = KEYS[kind]
    numbers = list(range(len(values)))
    columns = {
        "k": pa.array(values, type_),
        "v": pa.array(values, type_),
        "d": pa.array([Decimal(n) / 4 for n in numbers], pa.decimal128(10, 2)),
        "t": pa.array([datetime(2024, 1, 1 + n, 0, 0, 0, n) for n in numbers], pa.timestamp("us")),
        "f": pa.array([n / 3 for n in numbers], pa.float32()),
        "b": pa.array([bool(n % 2) for n in numbers], pa.bool_()),
    }
    stored = pa.table({OP: ["U"] * len(values), **columns})
    fields = tuple(Column(name, column.type) for name, column in columns.items())
    TargetWriter(sink.store()).write(staging.batch(stored, 1, schema=TableSchema(fields, ("k",))))
    store = sink.store()
    seen = store.look(staging.target)
    asked = pa.table({"k": pa.array([other, *reversed(values), values[0]], type_)})
    found = store.read_rows(seen, asked, ["V", "d", "t", "f", "b"])
    order = [*reversed(numbers), 0]
    assert found[FOUND].to_pylist() == [False] + [True] * len(order)
    assert found.column_names[1:] == ["V", "d", "t", "f", "b"]
    for name in found.column_names[1:]:
        held = columns[name.lower()]
        assert found[name].type == held.type
        assert found[name].to_pylist() == [None, *held.take(pa.array(order)).to_pylist()]


def test_columns_that_came_or_were_renamed_since_the_last_rows(sink, table) -> None:
    """Rows of before have them, too."""
    writer, store = TargetWriter(sink.store()), sink.store()
    writer.write(table.batch(None, 2, ddl=[[RenameColumn("id", "key"), RenameColumn("n", "m")]]))
    writer.write(table.batch(None, 3, ddl=[[AddColumn(Column("new", pa.int64()), 7)]]))
    seen = store.look(table.target)
    found = store.read_rows(seen, pa.table({"key": pa.array([2, 9], pa.int64())}), ["m", "new"])
    assert found.to_pylist() == [
        {FOUND: True, "m": 2, "new": 7},
        {FOUND: False, "m": None, "new": None},
    ]
