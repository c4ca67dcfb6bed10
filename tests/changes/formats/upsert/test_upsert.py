"""Upsert rows: by their record's key, with or without it in the value, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from changes.formats.engine.format import Packed, RowChange, pack
from changes.formats.recognise import confidences
from changes.formats.upsert.json import UpsertJson
from changes.model.model import (
    BadMessage,
    BadRecord,
    FormatOptions,
    Head,
    Kind,
    Mode,
    TableName,
)
from tests.changes.formats.json_messages import Number
from tests.changes.formats.own_records import NAMED, OWN
from tests.changes.formats.upsert.records import UPSERT, brief, decode, decoder, made, record, rows

GOOD = record({"id": 1}, {"id": 1, "name": "a"})


def refused(*values: bytes, **how: Any) -> tuple[int, str]:
    """The place and the reason of the first bad record."""
    with pytest.raises(BadRecord) as caught:
        decoder(**how).decode(0, range(len(values)), values)
    return caught.value.index, str(caught.value)


def explained(value: bytes, **options: Any) -> RowChange:
    (change,) = made(**options).explain(value)
    assert isinstance(change, RowChange)
    return change


def test_rows_and_deletes() -> None:
    """The last record of a key has its row; without a value the row is gone."""
    gone = (None, b"", b"null", b" null\n", b"  ")
    found = rows(
        GOOD,
        record({"id": 2}, {"id": 2, "name": None}),
        *(record({"id": 3}, value) for value in gone),
    )
    assert brief(found, "id", "name") == [
        ("U", "1", "a"),
        ("U", "2", None),
        *[("D", "3", None)] * len(gone),
    ]


def test_the_key_in_the_value_or_not() -> None:
    """A row has its key in any case; writers may leave it out (Flink's EXCEPT_KEY)."""
    with_key, without = record({"id": 1}, {"id": 1, "name": "a"}), record({"id": 1}, {"name": "a"})
    for values in (
        [with_key],
        [without],
        [with_key, without],
        [without, with_key, record(b'{"id":1}')],
    ):
        found = rows(*values)
        assert {row["id"] for row in found} == {"1"}
        assert [row["name"] for row in found[:1]] == ["a"]


def test_a_key_of_several_columns() -> None:
    """In any order, and partly in the value."""
    found = rows(
        record({"region": "eu", "id": 1}, {"id": 1, "name": "a"}),
        record({"id": 2, "region": "us"}, {"name": "b", "region": "us"}),
        record({"region": "us", "id": 2}),
    )
    assert brief(found, "region", "id", "name") == [
        ("U", "eu", "1", "a"),
        ("U", "us", "2", "b"),
        ("D", "us", "2", None),
    ]


@pytest.mark.parametrize("before", [0, 1, 3])
@pytest.mark.parametrize(
    "value", [{"id": 2}, {"id": None}, {"id": "1 "}, {"id": True}, {"id": [1]}]
)
def test_a_value_of_another_key_is_refused(before: int, value: Any) -> None:
    """By the column's name: which of both is meant nobody knows."""
    place, reason = refused(*[GOOD] * before, record({"id": 1}, value), GOOD)
    assert place == before
    assert reason == "d.t: id is another one in the value than in the record's key"


def test_keys_are_compared_as_the_lake_has_them() -> None:
    """A number as text is that number; the columns are text."""
    pairs = ((1, "1"), ("2", 2), (True, "true"), (Number("1.50"), "1.50"))
    values = [record({"id": key}, {"id": value, "n": 1}) for key, value in pairs]
    wanted = ["1", "2", "true", "1.50"]
    assert [row["id"] for row in rows(*values)] == wanted
    assert [row["id"] for row in rows(GOOD, *values)] == ["1", *wanted]


@pytest.mark.parametrize(
    ("key", "said"),
    [
        (None, "it is empty"),
        (b"", "it is empty"),
        (b"1", "got `int`"),
        (b'"a"', "got `str`"),
        (b"[1]", "got `array`"),
        (b"null", "got `null`"),
        (b"abc", "malformed"),
        (b"\0\0\0\0\7{}", "schema registry"),
        (b"{}", "it has none"),
        (b'{"id":1', "truncated"),
        (b'{"id":\xff}', "malformed|utf-8"),
    ],
)
def test_a_key_that_names_no_columns_is_refused(key: bytes | None, said: str) -> None:
    """And it is said what its writer has to do. Routing lets an object pass that is damaged."""
    wanted = rf"d\.t: have its writer make the key an object .*\"id\": 1.*{said}"
    for value in (record(key, {"id": 1}), record(key)):
        if not (key or b"").startswith(b"{"):
            with pytest.raises(BadMessage, match=wanted):
                made().peek(value)
            with pytest.raises(BadMessage, match=wanted):
                list(made().heads([GOOD, value]))
        with pytest.raises(BadMessage, match=wanted):
            made().explain(value)
        with pytest.raises(BadRecord, match=wanted) as caught:
            decoder().decode(0, [0, 1, 2], [GOOD, GOOD, value])
        assert caught.value.index == 2


@pytest.mark.parametrize("value", [b"1", b'"a"', b"[{}]", b"{", b'{"a":1}{}', b'{"a":"\xff"}',
                                   b'{"a":["\xff"]}', b"\x1f\x8b\x08", b"[" * 100_000])  # fmt: skip
def test_a_value_that_is_no_row_is_refused(value: bytes) -> None:
    """Whether it is read alone or among others, and where documents are known."""
    document = record({"id": 1}, {"a": [1]})
    for before in ([], [GOOD], [document, GOOD, document]):
        place, reason = refused(*before, record({"id": 1}, value), GOOD)
        assert place == len(before)
        assert reason.startswith("d.t: ")


def test_messages_of_others_that_are_not_read() -> None:
    """They are named, as in a pipeline of any format."""
    dms = {"data": {"id": 1}, "metadata": {"record-type": "data", "operation": "load",
                                           "schema-name": "s"}}  # fmt: skip
    assert refused(record({"id": 1}, dms)) == (0, "d.t: a message of AWS DMS's JSON")


def test_names() -> None:
    """The last of two members of one name counts; names that differ by case are refused."""
    assert brief(
        rows(GOOD, record(b'{"id":0,"id":1}', b'{"name":1,"name":"b"}')), "id", "name"
    ) == [
        ("U", "1", "a"),
        ("U", "1", "b"),
    ]
    place, reason = refused(GOOD, record({"id": 1}, {"ID": 1}))
    assert (place, reason) == (1, "d.t: the column names id and ID differ by case only")
    odd = {'a"b': 1, "c\\d": 2, "e\nf": 3, "ü": 4}
    found = rows(record({'k"': 1}, odd), record({'k"': 2}, odd))
    assert [row['k"'] for row in found] == ["1", "2"]
    assert [row['a"b'] for row in found] == ["1", "1"]


def test_values_are_text_as_they_stand() -> None:
    """Numbers digit by digit, objects and lists as their JSON, spaces included."""
    row = {
        "n": Number("1.10"),
        "big": 2**70,
        "flag": True,
        "text": "ü",
        "doc": Number('{"a": [1]}'),
    }
    told = ("1.10", str(2**70), "true", "ü", '{"a": [1]}')
    for count in (1, 3):
        found = rows(*[record({"id": 1}, row)] * count)
        assert brief(found, *row) == [("U", *told)] * count


def test_configured_types() -> None:
    """Of keys and others; a value that does not fit is refused at its record."""
    types = (("id", "bigint"), ("price", "decimal(10,2)"), ("ok", "boolean"))
    row = {"price": Number("1.5"), "ok": True}
    (found,) = rows(record({"id": 7}, row), types=types)
    assert (found["id"], str(found["price"]), found["ok"]) == (7, "1.50", True)
    good, bad = record({"id": 7}, row), record({"id": 8}, {"price": "x"})
    assert refused(good, good, bad, good, types=types)[0] == 2


def test_another_key_is_refused() -> None:
    """In the stream, and as the configuration has it: a delete would not find its row."""
    wide = record({"id": 1, "region": "eu"}, {"name": "a"})
    assert refused(GOOD, wide) == (1, "d.t: the key was (id) and is now (id, region)")
    said = "d.t: the record's key is (id), and keys says (name)"
    assert refused(GOOD, keys=("name",)) == (0, said)
    assert rows(GOOD, keys=("ID",))[0]["id"] == "1"
    assert refused(wide, keys=("id",))[1].endswith("is (id, region), and keys says (id)")


def test_a_null_in_the_key() -> None:
    """It tells no rows apart, unless the configuration names the key."""
    null = record({"id": None}, {"name": "a"})
    assert refused(GOOD, null) == (1, "d.t: key column id is null")
    assert [row["id"] for row in rows(GOOD, null, keys=("id",))] == ["1", None]


def test_a_changelog() -> None:
    """Each record is one change; records of other keys are, too."""
    found = rows(
        GOOD, record({"id": 1, "r": 2}), record({"id": 3}, {"name": "b"}), mode=Mode.APPEND
    )
    assert [(row["_op"], row["_offset"], row["id"], row["name"], row["r"]) for row in found] == [
        ("U", 0, "1", "a", None),
        ("D", 1, "1", None, "2"),
        ("U", 2, "3", "b", None),
    ]


def test_what_people_are_told() -> None:
    """No row before it is known, and no time."""
    table = TableName("d", "t")
    value = record({"id": 1}, {"name": "a", "doc": {"x": 1}})
    after = {"id": 1, "name": "a", "doc": '{"x":1}'}
    assert explained(value) == RowChange(table, "U", {"id": 1}, None, after, None)
    assert explained(record({"id": 1})) == RowChange(table, "D", {"id": 1}, {"id": 1}, None, None)
    assert explained(value, types=(("id", "string"),)).key == {"id": "1"}
    with pytest.raises(BadMessage, match=r"d\.t: key column id is null"):
        explained(record({"id": None}))


def test_heads_and_times() -> None:
    """Every record is of the one table, and proves no moment of its source."""
    format_ = made()
    values = [
        GOOD,
        record({"id": 1}),
        pack(b' {"id":1}', b""),
        pack(b'{"id":1}', b"x", [("h", b"1")]),
    ]
    assert list(format_.heads(values)) == [Head(Kind.ROWS, TableName("d", "t"))] * 4
    assert [format_.source_ms(value) for value in values] == [None] * 4


@pytest.mark.parametrize("value", [None, b""])
def test_what_was_not_packed(value: bytes | None) -> None:
    """It is a bad message, and nothing else comes out."""
    with pytest.raises(BadMessage):
        made().peek(value)


@pytest.mark.parametrize("name", sorted(NAMED))
def test_the_table_has_to_be_named(name: str) -> None:
    """By both options: no record does."""
    with pytest.raises(ValueError, match=f"{name}: {UPSERT} needs it"):
        UpsertJson(FormatOptions(extra={each: "x" for each in NAMED if each != name}))


@pytest.mark.parametrize("found", [record for _, record in OWN[UPSERT]])
def test_no_record_shows_the_format(found: Packed) -> None:
    """Any object may be a row, so it is no candidate either."""
    assert UPSERT not in confidences(found)


def test_how_a_target_begins() -> None:
    """An upsert does not say that the source had the row before; a delete does."""
    assert decode(decoder(), GOOD).begins == ""
    assert decode(decoder(), record({"id": 1})).begins == "D"
