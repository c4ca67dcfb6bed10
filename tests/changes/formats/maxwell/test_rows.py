"""Maxwell's rows: what becomes of images, keys, nulls and values."""

from __future__ import annotations

from typing import Any

import pytest

from changes.formats.engine.format import RowChange, pack
from changes.model.model import (
    FROM_PREFIX,
    HAS_PREFIX,
    OP,
    BadMessage,
    BadRecord,
    Kind,
    Mode,
    TableName,
)
from changes.routes.fold import fold
from tests.changes.formats.json_messages import RECORD_KEY, Number, decode, made, maxwell, rows

MAXWELL = "maxwell-json"


def explained(value: bytes) -> RowChange:
    (change,) = made(MAXWELL).explain(value)
    assert isinstance(change, RowChange)
    return change


def net(*values: bytes, **options: Any) -> list[dict[str, Any]]:
    changes = decode(MAXWELL, *values, **options)
    found: list[dict[str, Any]] = fold(changes.table, changes.schema.keys).to_pylist()
    return found


def test_rows() -> None:
    """Inserts and updates are rows, a delete ends its key."""
    found = rows(
        MAXWELL,
        maxwell("insert"),
        maxwell("update", {"id": 1, "name": "b"}, {"name": "a"}),
        maxwell("delete", {"id": 1, "name": "b"}),
    )
    assert [(row[OP], row["id"], row["name"]) for row in found] == [
        ("U", "1", "a"),
        ("U", "1", "b"),
        ("D", "1", None),
    ]


def test_numbers_are_exact() -> None:
    """No digit of a number is lost, however many there are."""
    texts = ["18446744073709551615", "-9223372036854775808", "1.10", "1E-7", "0.1" + "0" * 40]
    texts += ["123456789012345678901234567890.12345", "340282366920938463463374607431768211456"]
    values = [maxwell(data={"id": n, "v": Number(text)}) for n, text in enumerate(texts)]
    assert [row["v"] for row in rows(MAXWELL, *values)] == texts


def test_documents_stay_as_they_stand() -> None:
    """An object or a list is the text of the message, also where the column held none before."""
    document = Number('{"a": [1.50,  null], "b":"\\u00e9"}')
    values = [maxwell(data={"id": n, "v": v}) for n, v in enumerate(("x", document, 7, None, []))]
    found = [row["v"] for row in rows(MAXWELL, *values)]
    assert found == ["x", str(document), "7", None, "[]"]


def test_many_documents_in_one_block() -> None:
    """The first document in a column among many rows makes the block be read again, once."""
    values = [maxwell(data={"id": n, "v": {"n": n} if n % 2 else n}) for n in range(600)]
    found = [row["v"] for row in rows(MAXWELL, *values)]
    assert found == [f'{{"n":{n}}}' if n % 2 else str(n) for n in range(600)]


def test_absent_column_of_an_update_keeps_what_is_stored() -> None:
    """A minimal row image says nothing about the columns that it lacks."""
    values = [maxwell(data={"id": 1, "a": 1, "b": 2}), maxwell("update", {"id": 1, "b": 3})]
    found = rows(MAXWELL, *values)[1]
    assert (found["a"], found[HAS_PREFIX + "a"]) == (None, False)
    assert net(*values) == [{OP: "U", "id": "1", "a": "1", "b": "3"}]


def test_null_that_was_left_out_of_an_update() -> None:
    """With output_nulls=false a column that only ``old`` has is null now, not unchanged."""
    values = [
        maxwell(data={"id": 1, "a": 1, "b": 2}),
        maxwell("update", {"id": 1, "b": 2}, {"a": 1}),
    ]
    assert rows(MAXWELL, *values)[1].get(HAS_PREFIX + "a", True)
    assert net(*values) == [{OP: "U", "id": "1", "a": None, "b": "2"}]
    assert explained(values[1]).after == {"id": 1, "a": None, "b": 2}


def test_null_that_was_left_out_of_an_insert() -> None:
    """An inserted row lacks nothing: what is left out of it is null."""
    values = [maxwell(data={"id": 1, "a": 1}), maxwell("bootstrap-insert", {"id": 1})]
    assert net(*values) == [{OP: "U", "id": "1", "a": None}]


def test_column_that_only_old_names() -> None:
    """A column never seen before is learned from ``old`` too, and is null."""
    found = rows(MAXWELL, maxwell("update", {"id": 1}, {"gone": "x"}))
    assert found == [{OP: "U", "id": "1", "gone": None}]


def test_key_change() -> None:
    """An update whose ``old`` has another key ends that and writes the new one."""
    changes = decode(MAXWELL, maxwell("update", {"id": 2, "name": "a"}, {"id": 1}))
    found = changes.table.to_pylist()
    assert [(row[OP], row["id"]) for row in found] == [("D", "1"), ("U", "2")]
    assert found[1][FROM_PREFIX + "id"] == "1"
    assert changes.count == 1


def test_swapped_keys() -> None:
    """Two rows that exchange their keys, by way of a third, keep their values."""
    values = [
        maxwell(data={"id": 1, "name": "a"}),
        maxwell(data={"id": 2, "name": "b"}),
        maxwell("update", {"id": 3, "name": "a"}, {"id": 1}),
        maxwell("update", {"id": 1, "name": "b"}, {"id": 2}),
        maxwell("update", {"id": 2, "name": "a"}, {"id": 3}),
    ]
    found = {row["id"]: (row[OP], row["name"]) for row in net(*values)}
    assert found == {"1": ("U", "b"), "2": ("U", "a"), "3": ("D", None)}


def test_key_change_explained() -> None:
    """For people a key change is one U: before is the row overlaid with ``old``."""
    change = explained(maxwell("update", {"id": 2, "name": "b"}, {"id": 1}))
    assert (change.op, change.key) == ("U", {"id": 2})
    assert change.before == {"id": 1, "name": "b"}


def test_key_of_the_record() -> None:
    """Where messages don't name the key, the columns of the record's key are it."""
    value = maxwell(data={"ID": 1, "v": 2}, key=RECORD_KEY, primary_key_columns=None)
    assert decode(MAXWELL, value).schema.keys == ("ID",)
    assert explained(value).key == {"ID": 1}


def test_key_of_the_record_as_a_list() -> None:
    """kafka_key_format=array names the columns as well."""
    key = b'["shop","orders",[{"id":1},{"part":2}]]'
    value = maxwell(data={"part": 2, "id": 1}, key=key, primary_key_columns=None)
    assert decode(MAXWELL, value).schema.keys == ("id", "part")


def test_record_key_of_other_columns() -> None:
    """A table whose key becomes another one is refused by name, not kept by the old one."""
    other = b'{"database":"shop","table":"orders","pk.name":"a"}'
    values = [maxwell(key=key, primary_key_columns=None) for key in (RECORD_KEY, RECORD_KEY, other)]
    with pytest.raises(BadRecord, match=r"shop\.orders: the key was \(id\) and is now \(name\)"):
        decode(MAXWELL, *values)


@pytest.mark.parametrize("key", [None, b"****", b'{"_uuid":"x"}', b"[1,", b"\xff"])
def test_garbage_in_the_record_key(key: bytes | None) -> None:
    """A key that is none makes a changelog, and does not matter where one is configured."""
    value = maxwell(key=key, primary_key_columns=None)
    assert decode(MAXWELL, value).mode is Mode.APPEND
    assert decode(MAXWELL, value, keys=("id",)).schema.keys == ("id",)


def test_camel_case_names() -> None:
    """Members and columns in camel case are read; the key's columns are named as before."""
    data = {"orderId": 1, "unitPrice": Number("1.50")}
    value = maxwell(data=data, primary_key_columns=None, primaryKeyColumns=["order_id"])
    changes = decode(MAXWELL, value, value)
    assert changes.schema.keys == ("orderId",)
    assert changes.table["unitPrice"].to_pylist() == ["1.50"] * 2


def test_missing_key_column() -> None:
    """A row without its key is refused by the key's name."""
    with pytest.raises(BadRecord, match=r"shop\.orders: key column id is missing"):
        decode(MAXWELL, maxwell(data={"name": "a"}))


def test_changelog() -> None:
    """In append mode each change is a row, a delete with what was deleted."""
    found = rows(MAXWELL, maxwell(), maxwell("delete"), mode=Mode.APPEND)
    assert [(row["_op"], row["_offset"], row["name"]) for row in found] == [
        ("I", 0, "a"),
        ("D", 1, "a"),
    ]


@pytest.mark.parametrize("kind", ["bootstrap-start", "bootstrap-complete"])
def test_ends_of_a_bootstrap(kind: str) -> None:
    """They carry no row."""
    value = maxwell(kind, {})
    assert made(MAXWELL).peek(value).kind is Kind.NOTHING
    assert made(MAXWELL).explain(value) == ()


@pytest.mark.parametrize("value", [None, b""])
def test_tombstone(value: bytes | None) -> None:
    """Nothing to apply: the delete came before it."""
    format_ = made(MAXWELL)
    assert format_.peek(pack(RECORD_KEY, value)).kind is Kind.NOTHING
    assert [head.kind for head in format_.heads([pack(RECORD_KEY, value)])] == [Kind.NOTHING]


def test_heads() -> None:
    """A glance tells the table, for one message as for many."""
    format_ = made(MAXWELL)
    values = [maxwell(), maxwell(table="t2"), maxwell("bootstrap-start", {}), maxwell()]
    heads = list(format_.heads(values))
    assert heads == [format_.peek(value) for value in values]
    assert heads[1].table == TableName("shop", "t2")


def test_row_that_could_not_be_sent() -> None:
    """Maxwell's own dead letters hold only a key: a row of them would lose the rest."""
    value = pack(None, b'{"database":"d","table":"t","reason":"RecordTooLarge","data":{"id":1}}')
    with pytest.raises(BadMessage, match=r"d\.t: a row that Maxwell could not send.*TooLarge"):
        made(MAXWELL).peek(value)


def test_seconds_and_milliseconds() -> None:
    """Rows are told in seconds, statements in milliseconds; both come out in milliseconds."""
    assert explained(maxwell(ts=1477053217)).ts_ms == 1477053217000
    assert explained(maxwell(ts=1477053126000)).ts_ms == 1477053126000
    assert explained(maxwell(ts="soon")).ts_ms is None


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"[]", "not a Maxwell message"),
        (b'{"type":"insert","table":"t"}', "of type insert without a database"),
        (b'{"type":"merge","database":"d","table":"t"}', "of unknown type 'merge'"),
        (b'{"database":"d","table":"t"}', "without a type"),
    ],
)
def test_bad_messages(value: bytes, reason: str) -> None:
    """What is no message of Maxwell's is refused with what is wrong."""
    with pytest.raises(BadMessage, match=reason):
        list(made(MAXWELL).heads([pack(None, value)]))


def test_row_without_data() -> None:
    """A message of a row that holds none is refused at its place."""
    bad = pack(None, b'{"type":"insert","database":"d","table":"t"}')
    with pytest.raises(BadRecord, match=r"d\.t: a message of type insert without data") as error:
        decode(MAXWELL, maxwell(), bad)
    assert error.value.index == 1


def test_bad_record_leaves_the_decoder_as_it_was() -> None:
    """The records before a bad one can be decoded again without it."""
    decoder = made(MAXWELL).table_decoder(Mode.UPSERT, None)
    with pytest.raises(BadRecord):
        decoder.decode(0, range(2), [maxwell(data={"id": 1, "new": 2}), pack(None, b"{")])
    assert decoder.schema is None
    changes = decoder.decode(0, range(1), [maxwell(data={"id": 1, "new": 2})])
    assert changes is not None
    assert changes.table["new"].to_pylist() == ["2"]


def test_column_names_that_need_escapes() -> None:
    """Quotes and backslashes in names are read like any other."""
    data = {"id": 1, 'a"b': "x", "c\\d": [1], "e\nf": 2}
    found = rows(MAXWELL, maxwell(data=data), maxwell(data=data))
    assert found == [{OP: "U", "id": "1", 'a"b': "x", "c\\d": "[1]", "e\nf": "2"}] * 2


def test_row_that_could_not_be_sent_of_a_known_table() -> None:
    """Whatever type it claims to have, and among good ones."""
    values = [maxwell(), maxwell(), maxwell("insert", {"id": 1}, reason="RecordTooLarge")]
    with pytest.raises(BadMessage, match=r"shop\.orders: a row that Maxwell could not send"):
        list(made(MAXWELL).heads(values))
