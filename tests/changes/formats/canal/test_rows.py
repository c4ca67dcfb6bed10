"""Row messages become the rows of an upsert target or of a changelog."""

from __future__ import annotations

from decimal import Decimal

import pytest

from changes.formats.canal.json import CanalJson
from changes.model.model import (
    FROM,
    FROM_PREFIX,
    HAS_PREFIX,
    OP,
    BadRecord,
    FormatOptions,
    Mode,
)
from tests.changes.formats.canal.messages import TYPES, decode, message, row

FROM_ID = FROM_PREFIX + "id"
HAS_NAME, HAS_PRICE = HAS_PREFIX + "name", HAS_PREFIX + "price"


def test_many_rows_of_many_messages_keep_their_order() -> None:
    """Rows come in the order of the messages, and inside a message in its own."""
    values = [message(data=[row(str(10 * n + m)) for m in range(n % 4 + 1)]) for n in range(600)]
    ids = decode(*values).table["id"].to_pylist()
    assert ids == [10 * n + m for n in range(600) for m in range(n % 4 + 1)]


def test_delete_carries_the_key_only() -> None:
    """A delete ends the key; the other columns are null and have no presence column."""
    changes = decode(message(), message("DELETE", [row("2")]))
    assert changes.table.column_names == [OP, "id", "name", "price"]
    assert changes.table.to_pylist()[1] == {OP: "D", "id": 2, "name": None, "price": None}


def test_delete_with_a_misfit_beside_the_key() -> None:
    """A value that is not needed can't hold a delete up."""
    changes = decode(message("DELETE", [row("2", price="?")]))
    assert changes.table.to_pylist() == [{OP: "D", "id": 2, "name": None, "price": None}]


def test_key_change_is_two_rows() -> None:
    """An update of the key ends the old key before the new one appears."""
    changes = decode(message("UPDATE", [row("2")], [{"id": "1"}]))
    assert changes.table.to_pylist() == [
        {OP: "D", "id": 1, "name": None, "price": None, FROM: None, FROM_ID: None},
        {OP: "U", "id": 2, "name": "a", "price": Decimal("1.50"), FROM: 0, FROM_ID: 1},
    ]
    assert changes.count == 1


def test_rows_that_lack_a_column_are_marked() -> None:
    """Absent is not null: a presence column tells them apart, for just the columns concerned."""
    values = [
        message(data=[row()]),
        message(
            "UPDATE", [{"id": "1", "price": None}], types={"id": "int", "price": "decimal(10,2)"}
        ),
        message("DELETE", [{"id": "1"}]),
    ]
    table = decode(*values).table
    assert table.column_names == [OP, "id", "name", "price", HAS_NAME]
    assert table[HAS_NAME].to_pylist() == [True, False, True]
    assert table["name"].to_pylist() == ["a", None, None]


def test_key_change_between_marked_rows() -> None:
    """The end of the old key carries all columns, as null."""
    values = [message("UPDATE", [{"id": "9"}], [{}]), message("UPDATE", [row("2")], [{"id": "1"}])]
    table = decode(*values).table
    assert table[HAS_NAME].to_pylist() == [False, True, True]


def test_key_change_that_lacks_columns_says_where_from() -> None:
    """The rest is the old key's row before the change, which the row names."""
    partial = message("UPDATE", [{"id": "2", "name": "b"}], [{"id": "1"}])
    table = decode(message(data=[row("5")]), partial, message(data=[row("6")])).table
    assert table[HAS_PRICE].to_pylist() == [True, True, False, True]
    assert table[FROM].to_pylist() == [None, None, 1, None]
    assert table[FROM_ID].to_pylist() == [None, None, 1, None]


def test_key_order_alone_is_no_change() -> None:
    """The same columns in another order are the same key; the first order stays."""
    assert decode(message(keys=["id", "name"]), message(keys=["name", "id"])).schema.keys == (
        "id",
        "name",
    )


def test_changelog_rows() -> None:
    """A changelog has each change with its place: after images, and before images of deletes."""
    values = [
        message(data=[row("1"), row("2")]),
        message("UPDATE", [row("3")], [{"id": "1"}]),
        message("DELETE", [row("3", "gone")]),
        message(data=[{"id": "4"}]),
    ]
    changes = decode(*values, mode=Mode.APPEND)
    table = changes.table
    assert table.column_names == ["_op", "_partition", "_offset", "_index", "id", "name", "price"]
    assert table["_op"].to_pylist() == ["I", "I", "U", "D", "I"]
    assert table["_partition"].to_pylist() == [7] * 5
    assert table["_offset"].to_pylist() == [0, 0, 1, 2, 3]
    assert table["_index"].to_pylist() == [0, 1, 0, 0, 0]
    assert table["id"].to_pylist() == [1, 2, 3, 3, 4]
    assert table["name"].to_pylist() == ["a", "a", "a", "gone", None]
    assert changes.count == 5


def test_offsets_of_a_changelog_are_the_records() -> None:
    """Offsets may have gaps; each row has its own message's."""
    decoder = CanalJson(FormatOptions()).table_decoder(Mode.APPEND, None)
    changes = decoder.decode(3, [100, 205], [message(), message(data=[row(), row()])])
    assert changes is not None
    assert changes.table["_offset"].to_pylist() == [100, 205, 205]


def test_nothing_to_apply() -> None:
    """Messages without a row give nothing, and no schema."""
    decoder = CanalJson(FormatOptions()).table_decoder(Mode.UPSERT, None)
    assert decoder.decode(0, [0, 1], [message(data=[]), message(data=None)]) is None
    assert decoder.decode(0, [], []) is None
    assert decoder.schema is None


@pytest.mark.parametrize("left_out", [message(drop=["pkNames"]), message(keys=None)])
def test_a_table_without_a_key_does_not_get_one_midway(left_out: bytes) -> None:
    """Left out or null, a key is none: the target is a changelog by then."""
    assert decode(left_out).mode is Mode.APPEND
    with pytest.raises(BadRecord, match=r"the key was none and is now \(id\)") as refused:
        decode(left_out, message())
    assert (refused.value.index, refused.value.of_table) == (1, True)


def test_failed_call_leaves_the_schema_alone() -> None:
    """What a refused batch told of columns is forgotten, and the good records decode again."""
    decoder = CanalJson(FormatOptions()).table_decoder(Mode.UPSERT, None)
    decoder.decode(0, [0], [message()])
    before = decoder.schema
    wide = message(data=[row("2") | {"extra": "1"}], types=TYPES | {"extra": "int"})
    bad = message(data=[row("x")])
    with pytest.raises(BadRecord) as refused:
        decoder.decode(0, [1, 2], [wide, bad])
    assert (refused.value.index, decoder.schema) == (1, before)
    changes = decoder.decode(0, [1], [wide])
    assert changes is not None
    assert changes.table["extra"].to_pylist() == [1]


def test_narrower_type_later_takes_nothing_away() -> None:
    """A type block that is sent again narrower, or shorter, changes nothing."""
    decoder = CanalJson(FormatOptions()).table_decoder(Mode.UPSERT, None)
    decoder.decode(0, [0], [message(types=TYPES | {"id": "bigint"})])
    before = decoder.schema
    narrow = message(data=[{"id": "1", "name": "x"}], types={"id": "int"})
    changes = decoder.decode(0, [1], [narrow])
    assert changes is not None
    assert decoder.schema == changes.schema == before
