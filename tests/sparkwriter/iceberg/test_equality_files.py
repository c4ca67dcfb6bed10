"""The two files of an equality write: what is in them, and what is merged instead."""

from __future__ import annotations

import stat
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from actors.contract.writes import StagedBatch
from changes.model.errors import TargetRefused
from changes.model.model import FROM, OP, Column, Mode, TableSchema, TargetName
from changes.routes.shaping.layout import Sort, Transform
from changes.sql.spark.ddl_plan import LakeField
from sparkwriter.iceberg.equality_files import (
    FIELD_ID,
    ROWS_AT_ONCE,
    lay_files,
    merge_instead,
    plan_equality,
)
from sparkwriter.iceberg.partitions import MOST_PARTITIONS, Scattered

FIELDS = (LakeField(7, "Note", "string"), LakeField(2, "id", "long"), LakeField(9, "n", "int"))
SCHEMA = TableSchema(
    (Column("ID", pa.int32()), Column("note", pa.string()), Column("n", pa.int32())), ("ID",)
)
BATCH = StagedBatch("b", TargetName("lake", "s", "t"), Mode.UPSERT, SCHEMA, {})
NAMES = [OP, "ID", "note", "n"]


def laid(folder: Path, table: pa.Table, **more: object) -> tuple[pa.Table | None, pa.Table | None]:
    """The files of a batch, None where there is none."""
    staged = str(folder / "staged.parquet")
    pq.write_table(table, staged)
    plan = plan_equality(replace(BATCH, **more), FIELDS, empty=False)  # type: ignore[arg-type]
    rows, keys = folder / "rows", folder / "keys"
    of_rows, of_keys = lay_files(plan, staged, rows, keys)
    told = [of_rows[0] if of_rows else of_keys._replace(rows=0), of_keys]
    assert [one.rows > 0 for one in told] == [rows.exists(), keys.exists()]
    found = [pq.read_table(one.path) if one.rows else None for one in told]
    assert [one.rows for one in told] == [0 if f is None else f.num_rows for f in found]
    return found[0], found[1]


def orders(*rows: tuple[str, int, str | None, int | None]) -> pa.Table:
    ops, ids, notes, numbers = zip(*rows, strict=True)
    arrays = [ops, pa.array(ids, "i4"), pa.array(notes, pa.string()), pa.array(numbers, "i4")]
    return pa.table(arrays, names=NAMES)


def test_rows_and_the_keys_they_replace(tmp_path: Path) -> None:
    """In the table's order, types and spelling, found by its ids; a deleted row is a key alone."""
    rows, keys = laid(tmp_path, orders(("U", 1, "a", 1), ("D", 2, None, None), ("U", 3, None, 3)))
    assert rows is not None
    assert keys is not None
    assert rows.to_pydict() == {"Note": ["a", None], "id": [1, 3], "n": [1, 3]}
    assert rows.schema.types == [pa.string(), pa.int64(), pa.int32()]
    assert [field.metadata[FIELD_ID] for field in rows.schema] == [b"7", b"2", b"9"]
    assert keys.to_pydict() == {"id": [1, 2, 3]}
    assert keys.schema.field("id").metadata[FIELD_ID] == b"2"


def test_deletes_alone(tmp_path: Path) -> None:
    """There is no file of no rows."""
    rows, keys = laid(tmp_path, orders(("D", 2, None, None)))
    assert rows is None
    assert keys is not None
    assert keys.num_rows == 1


def test_more_rows_than_are_held_at_once(tmp_path: Path) -> None:
    """They are written in parts, all of them."""
    many = ROWS_AT_ONCE + 10
    table = orders(*(("D" if n % 2 else "U", n, "x", n) for n in range(many)))
    rows, keys = laid(tmp_path, table)
    assert rows is not None
    assert keys is not None
    assert (rows.num_rows, keys.num_rows) == (many // 2, many)


def test_a_changelog_replaces_nothing(tmp_path: Path) -> None:
    """Every row is kept, none is a key."""
    rows, keys = laid(tmp_path, orders(("U", 1, "a", 1), ("U", 1, "b", 2)), mode=Mode.APPEND)
    assert rows is not None
    assert rows.num_rows == 2
    assert keys is None


def test_a_key_that_comes_twice(tmp_path: Path) -> None:
    """It would be two rows; MERGE refuses it, too."""
    with pytest.raises(TargetRefused, match=r"the same key \(id\)"):
        laid(tmp_path, orders(("U", 1, "a", 1), ("D", 1, None, None)))


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        ("decimal(4, 2)", pa.array([Decimal("123.45")])),
        ("decimal(6, 1)", pa.array([Decimal("123.45")])),
        ("int", pa.array([2**40])),
        ("timestamp", pa.array([2**61]).cast(pa.timestamp("ms"))),
        ("boolean", pa.array(["perhaps"])),
    ],
)
def test_a_value_that_does_not_fit(tmp_path: Path, type_: str, value: pa.Array) -> None:
    """It is refused with the column's name, never cut."""
    staged = str(tmp_path / "staged.parquet")
    pq.write_table(pa.table([["U"], value], names=[OP, "v"]), staged)
    plan = plan_equality(BATCH, (LakeField(1, "v", type_),), empty=True)
    with pytest.raises(TargetRefused, match="column v"):
        lay_files(plan, staged, tmp_path / "rows", tmp_path / "keys")


def test_what_is_merged_instead() -> None:
    """Each with its reason; an empty target takes rows without all columns, as nulls."""
    assert merge_instead(BATCH, FIELDS, NAMES, empty=False) is None
    partial = replace(BATCH, partial=("note",))
    assert merge_instead(partial, FIELDS, NAMES, empty=False)
    assert merge_instead(BATCH, FIELDS, [*NAMES, FROM], empty=True)
    assert merge_instead(replace(BATCH, positions="lsn"), FIELDS, NAMES, empty=False) is None
    less = merge_instead(BATCH, FIELDS, NAMES[:3], empty=False)
    assert less is not None
    assert less.endswith("n")
    assert merge_instead(BATCH, FIELDS, NAMES[:3], empty=True) is None
    doubled = (LakeField(1, "id", "double"), *FIELDS[:1], FIELDS[2])
    floating = merge_instead(BATCH, doubled, NAMES, empty=False)
    assert floating is not None
    assert "of type double" in floating
    log = replace(BATCH, mode=Mode.APPEND)
    assert merge_instead(log, doubled, NAMES, empty=False) is None


def test_a_file_for_each_partition(tmp_path: Path) -> None:
    """Each in its order, nulls first; deleted rows are in none, and their keys are."""
    staged = str(tmp_path / "staged.parquet")
    rows = (("U", 3, "a/b", 1), ("U", 1, "a/b", 2), ("D", 9, None, None), ("U", 2, None, None))
    pq.write_table(orders(*rows, ("U", 4, "a/b", None)), staged)
    parts, order = (Transform("identity", "NOTE"),), (Sort("n", descending=True),)
    plan = plan_equality(BATCH, FIELDS, parts, order, empty=False)
    laid, keys = lay_files(plan, staged, tmp_path / "rows", tmp_path / "keys")
    found = {one.partition: pq.read_table(one.path)["id"].to_pylist() for one in laid}
    assert found == {("a/b",): [4, 1, 3], (None,): [2]}
    assert [one.rows for one in laid] == [3, 1]
    assert keys.rows == 5
    assert {stat.S_IMODE(one.path.stat().st_mode) for one in laid} == {0o600}


def test_rows_of_too_many_partitions(tmp_path: Path) -> None:
    """Are not laid; what was is closed."""
    staged = str(tmp_path / "staged.parquet")
    rows = [("U", number, None, number) for number in range(MOST_PARTITIONS + 1)]
    pq.write_table(orders(*rows), staged)
    plan = plan_equality(BATCH, FIELDS, (Transform("bucket", "n", 10**6),), empty=False)
    with pytest.raises(Scattered, match="more than 100 partitions"):
        lay_files(plan, staged, tmp_path / "rows", tmp_path / "keys")
