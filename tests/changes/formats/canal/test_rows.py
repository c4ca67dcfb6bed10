"""Row messages become the rows of an upsert target or of a changelog."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from changes.formats.canal.json import CanalJson
from changes.model.model import (
    FROM,
    FROM_PREFIX,
    HAS_PREFIX,
    OP,
    BadRecord,
    Column,
    FormatOptions,
    Mode,
    TableSchema,
)
from tests.changes.formats.canal.messages import TYPES, decode, message

FROM_ID = FROM_PREFIX + "id"
HAS_NAME, HAS_PRICE = HAS_PREFIX + "name", HAS_PREFIX + "price"


def row(id: str = "1", name: str | None = "a", price: str | None = "1.50") -> dict[str, Any]:
    return {"id": id, "name": name, "price": price}


def test_insert_has_all_columns_typed() -> None:
    """An insert is the row's new state; columns and key are those that the message tells."""
    changes = decode(message())
    assert changes.table.to_pylist() == [{OP: "U", "id": 1, "name": "a", "price": Decimal("1.50")}]
    assert changes.schema == TableSchema(
        (
            Column("id", pa.int32()),
            Column("name", pa.string()),
            Column("price", pa.decimal128(10, 2)),
        ),
        ("id",),
    )
    assert changes.mode is Mode.UPSERT


def test_many_rows_of_many_messages_keep_their_order() -> None:
    """Rows come in the order of the messages, and inside a message in its own."""
    values = [message(data=[row(str(10 * n + m)) for m in range(n % 4 + 1)]) for n in range(600)]
    ids = decode(*values).table["id"].to_pylist()
    assert ids == [10 * n + m for n in range(600) for m in range(n % 4 + 1)]


def test_init_is_an_insert() -> None:
    """Rows of a first load count as inserted."""
    assert decode(message("INIT"), mode=Mode.APPEND).table["_op"].to_pylist() == ["I"]


def test_update_is_the_data() -> None:
    """An update that leaves the key is the new state; old is not needed."""
    changes = decode(message("UPDATE", [row(name="b")], [{"name": "a"}]))
    assert changes.table.to_pylist() == [{OP: "U", "id": 1, "name": "b", "price": Decimal("1.50")}]


@pytest.mark.parametrize("old", [None, [], [None], [{}]])
def test_update_without_old(old: Any) -> None:
    """An update that tells nothing of before changes no key."""
    assert decode(message("UPDATE", [row(), row("2")], old)).table[OP].to_pylist() == ["U", "U"]


def test_delete_carries_the_key_only() -> None:
    """A delete ends the key; the other columns are null and have no presence column."""
    changes = decode(message(), message("DELETE", [row("2")]))
    assert changes.table.column_names == [OP, "id", "name", "price"]
    assert changes.table.to_pylist()[1] == {OP: "D", "id": 2, "name": None, "price": None}


def test_delete_with_a_misfit_beside_the_key() -> None:
    """A value that is not needed can't hold a delete up."""
    changes = decode(message("DELETE", [row("2", price="?")]))
    assert changes.table.to_pylist() == [{OP: "D", "id": 2, "name": None, "price": None}]


def test_delete_of_keys_only() -> None:
    """A delete may come with nothing but the key: that is all it needs."""
    changes = decode(message(), message("DELETE", [{"id": "2"}]))
    assert changes.table.column_names == [OP, "id", "name", "price"]


def test_key_change_is_two_rows() -> None:
    """An update of the key ends the old key before the new one appears."""
    changes = decode(message("UPDATE", [row("2")], [{"id": "1"}]))
    assert changes.table.to_pylist() == [
        {OP: "D", "id": 1, "name": None, "price": None, FROM: None, FROM_ID: None},
        {OP: "U", "id": 2, "name": "a", "price": Decimal("1.50"), FROM: 0, FROM_ID: 1},
    ]
    assert changes.count == 1


def test_key_change_of_a_composite_key_takes_the_rest_from_data() -> None:
    """Only the part of the key that changed is in old; the others are as in data."""
    types = {"a": "int", "b": "varchar(9)", "v": "int"}
    data = [{"a": "1", "b": "x", "v": "5"}]
    changes = decode(message("UPDATE", data, [{"b": "w"}], types=types, keys=["a", "b"]))
    assert [(r[OP], r["a"], r["b"]) for r in changes.table.to_pylist()] == [
        ("D", 1, "w"),
        ("U", 1, "x"),
    ]


def test_old_that_over_reports_is_no_key_change() -> None:
    """A key column in old with the value it has in data did not change."""
    data, old = [row("1"), row("3")], [{"id": "1", "name": "z"}, {"id": "2", "name": "a"}]
    changes = decode(message("UPDATE", data, old))
    assert [(r[OP], r["id"]) for r in changes.table.to_pylist()] == [("U", 1), ("D", 2), ("U", 3)]


def test_old_shorter_than_data() -> None:
    """Rows beyond the end of old changed no key that we know of."""
    changes = decode(message("UPDATE", [row("2"), row("3")], [{"id": "1"}]))
    assert changes.table[OP].to_pylist() == ["D", "U", "U"]


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


def test_rows_of_one_message_may_differ() -> None:
    """The rows of a message need not carry the same columns."""
    table = decode(message("UPDATE", [row(), {"id": "2", "name": "b"}], [{}, {}])).table
    assert table[HAS_PRICE].to_pylist() == [True, False]


def test_insert_that_lacks_a_column_is_marked_too() -> None:
    """An insert's missing column counts as absent, not as null."""
    table = decode(message(), message(data=[{"id": "2", "name": "b"}])).table
    assert table[HAS_PRICE].to_pylist() == [True, False]


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


def test_key_change_in_an_old_that_is_all_there_is() -> None:
    """A part of the key that only old holds did not change."""
    types = {"a": "int", "b": "int", "v": "int"}
    old = [{"a": "1", "b": "2"}]
    update = message("UPDATE", [{"b": "3", "v": "7"}], old, types=types, keys=["a", "b"])
    rows = decode(update).table.select([OP, "a", "b"]).to_pylist()
    assert rows == [{OP: "D", "a": 1, "b": 2}, {OP: "U", "a": 1, "b": 3}]


def test_update_before_is_old() -> None:
    """InLong names what an update replaced otherwise; a key change in it counts."""
    first = message(data=[row()])
    update = message("UPDATE", [row("2")], updateBefore=[row("1")], drop=["old"])
    assert decode(first, update).table[OP].to_pylist() == ["U", "D", "U"]


@pytest.mark.parametrize("kind", ["INSERT", "UPDATE", "DELETE"])
def test_missing_key_column(kind: str) -> None:
    """A row without its key can't be applied."""
    with pytest.raises(BadRecord, match=r"shop\.orders: key column id is missing") as refused:
        decode(message(), message(kind, [{"name": "a", "price": "1"}]))
    assert refused.value.index == 1


def test_key_column_that_no_row_has() -> None:
    """A key that the table does not have is refused, configured or not."""
    with pytest.raises(BadRecord, match="key column code is missing"):
        decode(message(), keys=("code",))
    with pytest.raises(BadRecord, match="key column code is missing"):
        decode(message(keys=["code"]))


def test_null_key_is_refused() -> None:
    """A primary key is never null."""
    with pytest.raises(BadRecord, match="key column id is null") as refused:
        decode(message(), message(data=[row("2"), row() | {"id": None}]))
    assert refused.value.index == 1


def test_null_in_a_configured_key() -> None:
    """A key that the configuration names may hold nulls."""
    changes = decode(message(data=[row(name=None)]), keys=("id", "name"))
    assert changes.schema.keys == ("id", "name")
    assert changes.table["name"].to_pylist() == [None]


def test_configured_key_wins() -> None:
    """The messages' key does not matter then, nor that it changes."""
    changes = decode(message(keys=["name"]), message(keys=None), keys=("id",))
    assert changes.schema.keys == ("id",)


def test_key_that_changes_is_refused() -> None:
    """A table whose key changed can't go on in the same target."""
    with pytest.raises(BadRecord, match=r"the key was \(id\) and is now \(id, name\)") as refused:
        decode(message(), message(keys=["id", "name"]))
    assert refused.value.index == 1
    with pytest.raises(BadRecord, match=r"the key was \(id\) and is now none"):
        decode(message(), message(keys=None))
    with pytest.raises(BadRecord, match=r"the key was none and is now \(id\)"):
        decode(message(keys=None), message())


def test_key_order_alone_is_no_change() -> None:
    """The same columns in another order are the same key; the first order stays."""
    assert decode(message(keys=["id", "name"]), message(keys=["name", "id"])).schema.keys == (
        "id",
        "name",
    )


def test_implicit_key_is_a_key() -> None:
    """The row number that Alibaba's RDS adds to tables without a key serves as one."""
    name = "__#alibaba_rds_row_id#__"
    types = {name: "bigint", "v": "int"}
    changes = decode(message(data=[{name: "7", "v": "1"}], types=types, keys=[name]))
    assert changes.schema.keys == (name,)


def test_no_key_makes_a_changelog() -> None:
    """A table without a key is kept as the list of what happened."""
    for keys in (None, []):
        changes = decode(message(keys=keys))
        assert changes.mode is Mode.APPEND
        assert changes.schema.keys == ()


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


@pytest.mark.parametrize("data", [None, []])
def test_change_written_as_a_statement(data: Any) -> None:
    """A statement-format binlog tells no rows: that must not pass in silence."""
    value = message("UPDATE", data, sql="UPDATE orders SET price = price * 2")
    with pytest.raises(BadRecord, match="binlog_format=ROW") as refused:
        decode(message(), value)
    assert refused.value.index == 1


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (message(drop=["data"]), "without data"),
        (message(data={"id": "1"}), r"\$\.data"),
        (message(data=[["1"]]), r"\$\.data"),
        (message(data=["1"]), r"\$\.data"),
        (message(data=[None]), "null in place of a row"),
        (message("UPDATE", old="x"), r"\$\.old"),
        (message(types=["int"]), "mysqlType"),
        (message(types={"id": 4}), "mysqlType"),
        (message(keys="id"), "pkNames"),
        (message(keys=[1]), "pkNames"),
        (message(_tidb={"onlyHandleKey": True}), "only the key"),
        (message(_tidb={"claimCheckLocation": "s3://x"}), "only the key"),
        (message().replace(b'"a"', b'"\\ud800"'), "not a Canal message"),
        (message().replace(b'"a"', b'"\xff"'), "not valid text"),
        (message()[:-5], "not a Canal message"),
    ],
)
def test_bad_rows(value: bytes, said: str) -> None:
    """A record that can't be read is named by its place, after the good ones."""
    with pytest.raises(BadRecord, match=said) as refused:
        decode(message(), value, message())
    assert refused.value.index == 1
    assert "\n" not in refused.value.reason


@pytest.mark.parametrize("number", [{}, [], {"a": 1}, "x", 2004.0, None, True])
def test_a_number_of_a_type_may_be_anything(number: object) -> None:
    """Where it is none of Canal's it says nothing; it never ends the process that decodes."""
    table = decode(message(sqlType={"name": number})).table
    assert table["name"].to_pylist() == ["a"]


@pytest.mark.parametrize("left_out", [message(drop=["pkNames"]), message(keys=None)])
def test_a_table_without_a_key_does_not_get_one_midway(left_out: bytes) -> None:
    """Left out or null, a key is none: the target is a changelog by then."""
    assert decode(left_out).mode is Mode.APPEND
    with pytest.raises(BadRecord, match=r"the key was none and is now \(id\)") as refused:
        decode(left_out, message())
    assert (refused.value.index, refused.value.of_table) == (1, True)


def test_large_row_cut_to_its_key_may_be_a_delete() -> None:
    """A delete needs no more than the key."""
    changes = decode(message("DELETE", [{"id": "1"}], _tidb={"onlyHandleKey": True, "commitTs": 1}))
    assert changes.table[OP].to_pylist() == ["D"]


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
