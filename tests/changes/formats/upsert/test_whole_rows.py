"""A record has its whole row: what it lacks is null, and nothing stored outlives it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from changes.formats.engine.format import TableDecoder
from changes.model.model import HAS_PREFIX, OP, BadRecord, Changes, Column, Mode, TableSchema
from changes.routes.fold import concat_changes, fold
from tests.changes.formats.upsert.records import brief, decode, decoder, record


def stored(*names: str) -> TableSchema:
    """A target's columns, of text."""
    return TableSchema(tuple(Column(name, pa.string()) for name in names), ("id",))


def told(schema: TableSchema, **how: Any) -> TableDecoder:
    """A decoder after a restart: it knows what the target has."""
    reader = decoder(**how)
    reader.use_stored_schema(schema)
    return reader


def whole(changes: Changes) -> list[dict[str, Any]]:
    """The rows, none of which lacks a column."""
    assert not [name for name in changes.table.column_names if name.startswith(HAS_PREFIX)]
    assert changes.table.column_names == [OP, *(column.name for column in changes.schema.columns)]
    found: list[dict[str, Any]] = changes.table.to_pylist()
    return found


def test_columns_that_some_records_lack() -> None:
    """Before and behind those that have them, in one call."""
    found = whole(
        decode(
            decoder(),
            record({"id": 1}, {"a": "x"}),
            record({"id": 2}, {"b": "y"}),
            record({"id": 3}, {"a": "x", "b": "y", "c": {"d": 1}}),
            record({"id": 4}, {}),
            record({"id": 5}),
        )
    )
    assert brief(found, "id", "a", "b", "c") == [
        ("U", "1", "x", None, None),
        ("U", "2", None, "y", None),
        ("U", "3", "x", "y", '{"d":1}'),
        ("U", "4", None, None, None),
        ("D", "5", None, None, None),
    ]


@pytest.mark.parametrize("count", [1, 2, 600])
def test_columns_that_a_later_call_lacks(count: int) -> None:
    """Its first records, too, and where no record of it has them."""
    reader = decoder()
    decode(reader, record({"id": 1}, {"a": "x", "b": "y"}))
    lacking = [record({"id": number}, {"a": "z"}) for number in range(count)]
    changes = decode(reader, *lacking)
    assert brief(whole(changes), "a", "b") == [("U", "z", None)] * count
    last = decode(reader, *lacking, record({"id": 1}, {"a": "z", "c": 1}))
    assert brief(whole(last), "a", "b", "c")[-2:] == [("U", "z", None, None), ("U", "z", None, "1")]


def test_the_last_record_of_a_key_counts_alone() -> None:
    """Net changes take nothing from earlier records of the key, in one call or several."""
    reader = decoder()
    first = decode(reader, record({"id": 1}, {"a": "x"}), record({"id": 2}, {"a": "x", "b": "y"}))
    second = decode(reader, record({"id": 2}, {"a": "z"}), record({"id": 1}, {"b": "z"}))
    found = fold(concat_changes([first.table, second.table]), ("id",)).to_pylist()
    assert brief(found, "id", "a", "b") == [("U", "2", "z", None), ("U", "1", None, "z")]


def test_columns_that_the_target_alone_has() -> None:
    """After a restart no record may have shown them: they are null from the first row on."""
    reader = told(stored("id", "a", "b"))
    assert reader.schema is None
    changes = decode(reader, record({"id": 1}, {"a": "x"}), record({"id": 2}))
    assert brief(whole(changes), "id", "a", "b") == [("U", "1", "x", None), ("D", "2", None, None)]
    assert reader.schema == changes.schema
    assert [column.type for column in changes.schema.columns] == [pa.string()] * 3
    later = decode(reader, record({"id": 1}, {"b": "y"}))
    assert brief(whole(later), "a", "b") == [("U", None, "y")]
    both = concat_changes([changes.table, later.table])
    assert brief(fold(both, ("id",)).to_pylist(), "id", "b") == [("D", "2", None), ("U", "1", "y")]


def test_their_types() -> None:
    """The configured ones, else text, as they would have with values."""
    columns = (Column("N", pa.int64()), Column("masked", pa.null()), Column("other", pa.int32()))
    schema = TableSchema((Column("id", pa.string()), *columns), ("id",))
    reader = told(schema, types=(("n", "bigint"),))
    changes = decode(reader, record({"id": 1}, {}))
    assert [(column.name, column.type) for column in changes.schema.columns] == [
        ("id", pa.string()), ("N", pa.int64()), ("masked", pa.string()), ("other", pa.string()),
    ]  # fmt: skip


def test_names_that_the_target_spells_otherwise() -> None:
    """The source has respelled a column: its rows have the new name, and no second one. Once rows
    have got the old one, the records behind them are decoded anew."""
    changes = decode(told(stored("ID", "Name")), record({"id": 1}, {"name": "x"}))
    assert [column.name for column in changes.schema.columns] == ["id", "name"]
    reader = told(stored("id", "Name"))
    decode(reader, record({"id": 1}, {"a": 1}))
    with pytest.raises(BadRecord, match="Name and name differ by case only") as caught:
        reader.decode(0, [1, 2], [record({"id": 1}, {"a": 1}), record({"id": 1}, {"name": "x"})])
    assert (caught.value.index, caught.value.of_table) == (1, True)
    assert [row["Name"] for row in whole(decode(reader, record({"id": 1}, {"Name": "x"})))] == ["x"]


def test_a_changelog_overwrites_nothing() -> None:
    """It gets no columns of the target, whose own are among them."""
    reader = told(TableSchema((Column("_op", pa.string()), Column("b", pa.string())), ()),
                  mode=Mode.APPEND)  # fmt: skip
    changes = decode(reader, record({"id": 1}, {"a": "x"}))
    assert changes.table.column_names == ["_op", "_partition", "_offset", "_index", "id", "a"]
    assert changes.carried is None


def test_a_failed_call_leaves_nothing() -> None:
    """The records before the bad one are decoded again, as if it had not come."""
    reader = decoder()
    good, bad = record({"id": 1}, {"a": "x"}), record({"id": 2}, {"id": 3, "b": "y"})
    with pytest.raises(BadRecord):
        reader.decode(0, [0, 1], [record({"id": 1}, {"c": 1}), bad])
    assert reader.schema is None
    assert brief(whole(decode(reader, good)), "id", "a") == [("U", "1", "x")]
