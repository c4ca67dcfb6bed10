"""The rows of a data file that have one of a batch's keys: found, all of them and no others."""

from __future__ import annotations

import io
from collections.abc import Sequence
from datetime import date
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from changes.sql.spark.ddl_plan import LakeField
from changes.sql.spark.schema import arrow_type
from sparkwriter.iceberg import stored_keys
from sparkwriter.iceberg.equality_files import FIELD_ID
from sparkwriter.iceberg.stored_keys import KeySet, Unseekable, positions_of

Key = tuple[object, ...]

KINDS: dict[str, st.SearchStrategy[object]] = {
    "long": st.integers(-3, 3),
    "string": st.sampled_from(["", "a", "ß", "a" * 100]),
    "decimal(6, 2)": st.sampled_from([Decimal("-0.01"), Decimal("0.00"), Decimal("9999.99")]),
    "date": st.sampled_from([date(1, 1, 1), date(2026, 2, 28)]),
    "boolean": st.booleans(),
    "binary": st.sampled_from([b"", b"\x00", b"\xff"]),
}


def fields(types: Sequence[str]) -> list[LakeField]:
    return [LakeField(10 + at, f"k{at}", kind) for at, kind in enumerate(types)]


def columns(keys: Sequence[Key], types: Sequence[str]) -> list[pa.ChunkedArray]:
    return [
        pa.chunked_array([pa.array([key[at] for key in keys], arrow_type(kind))])
        for at, kind in enumerate(types)
    ]


def stored(arrays: dict[str, pa.Array], ids: dict[str, int], group: int = 5) -> pq.ParquetFile:
    """A data file with row groups of so many rows."""
    schema = pa.schema(
        pa.field(name, array.type, metadata={FIELD_ID: str(ids[name])} if name in ids else None)
        for name, array in arrays.items()
    )
    out = io.BytesIO()
    table = pa.Table.from_arrays(list(arrays.values()), schema=schema)
    pq.write_table(table, out, row_group_size=group, store_decimal_as_integer=True)
    return pq.ParquetFile(pa.BufferReader(out.getvalue()))


@given(data=st.data())
def test_as_a_set_of_keys(data: st.DataObject) -> None:
    """Keys of one part or several, with nulls, in several row groups, looked up in pieces."""
    types = data.draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=3))
    keys = st.tuples(*(st.none() | KINDS[kind] for kind in types))
    wanted = data.draw(st.lists(keys, min_size=1, max_size=6, unique=True))
    rows = data.draw(st.lists(keys, max_size=30))
    own = fields(types)
    arrays = {field.name: column.combine_chunks() for field, column in zip(
        own, columns(rows, types), strict=True)}  # fmt: skip
    file = stored(
        arrays, {field.name: field.id or 0 for field in own}, data.draw(st.integers(1, 9))
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stored_keys, "ROWS_AT_ONCE", data.draw(st.integers(1, 9)))
        found = positions_of(KeySet(columns(wanted, types)), own, file)
    assert list(found) == [at for at, key in enumerate(rows) if key in wanted]


def test_row_groups_that_cannot_hold_a_key_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the least and the most of a whole number; their rows count as places all the same."""
    file = stored({"id": pa.array(range(30), pa.int64())}, {"id": 10})
    keys = KeySet(columns([(11,), (14,), (29,)], ["long"]))
    looked: list[int] = []
    has = keys.has
    monkeypatch.setattr(keys, "has", lambda found: looked.append(found[0][0].as_py()) or has(found))
    assert list(positions_of(keys, fields(["long"]), file)) == [11, 14, 29]
    assert looked == [10, 15, 20, 25]


def test_a_column_is_found_by_its_id() -> None:
    """It had another name when the file was written, and another has its name now."""
    arrays = {"was": pa.array([1, 2, 3]), "k0": pa.array([3, 3, 1])}
    file = stored(arrays, {"was": 10, "k0": 77})
    found = positions_of(KeySet(columns([(3,)], ["long"])), fields(["long"]), file)
    assert list(found) == [2]


def test_a_column_that_was_narrower() -> None:
    """Widened since: int to long, decimal to one of more digits."""
    arrays = {
        "k0": pa.array([1, 2**31 - 1], pa.int32()),
        "k1": pa.array([Decimal("1.50"), Decimal("2.50")], pa.decimal128(4, 2)),
    }
    types = ["long", "decimal(20, 2)"]
    keys = KeySet(columns([(2**31 - 1, Decimal("2.50"))], types))
    assert list(positions_of(keys, fields(types), stored(arrays, {"k0": 10, "k1": 11}))) == [1]


@pytest.mark.parametrize(
    ("array", "ids", "why"),
    [
        (pa.array([1]), {}, "no column of the id of k0"),
        (pa.array([1]), {"k0": 11}, "no column of the id of k0"),
        (pa.array(["x"]), {"k0": 10}, "k0 is no long"),
        (pa.array([[1]]), {"k0": 10}, "nested"),
    ],
)
def test_what_cannot_be_read_is_told(array: pa.Array, ids: dict[str, int], why: str) -> None:
    """Files of others: without ids, without the column, of types that are no table's."""
    with pytest.raises(Unseekable, match=why):
        positions_of(
            KeySet(columns([(1,)], ["long"])), fields(["long"]), stored({"k0": array}, ids)
        )


class Watched(KeySet):
    """Notes the bytes of all keys that are looked up together."""

    sizes: tuple[int, ...] = ()

    def has(self, columns: Sequence[pa.ChunkedArray]) -> pa.ChunkedArray:
        self.sizes += (sum(column.nbytes for column in columns),)
        return super().has(columns)


def test_wide_keys_are_held_a_few_at_a_time() -> None:
    """However many a row group has: nobody counts them in the memory budget."""
    rows, width = 120_000, 1000
    text = pa.array([f"{number:0{width}d}" for number in range(rows)])
    file = stored({"k0": text}, {"k0": 10}, group=rows)
    keys = Watched(columns([(text[rows - 1].as_py(),)], ["string"]))
    assert list(positions_of(keys, fields(["string"]), file)) == [rows - 1]
    assert sum(keys.sizes) >= text.nbytes > 3 * stored_keys.BYTES_AT_ONCE
    assert max(keys.sizes) < stored_keys.BYTES_AT_ONCE + 2 * width * (1 << 14)


def test_narrow_keys_are_looked_up_a_million_at_once() -> None:
    """Each lookup builds the table of the batch's keys: many of them would cost more than it."""
    file = stored({"k0": pa.array(range(300_000), pa.int64())}, {"k0": 10}, group=300_000)
    keys = Watched(columns([(299_999,)], ["long"]))
    assert list(positions_of(keys, fields(["long"]), file)) == [299_999]
    assert len(keys.sizes) == 1
