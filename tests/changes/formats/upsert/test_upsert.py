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
    TableName,
)
from tests.changes.formats.cases import NAMED
from tests.changes.formats.json_messages import Number
from tests.changes.formats.own_records import OWN
from tests.changes.formats.upsert.records import UPSERT, decode, decoder, made, record, rows

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


def test_configured_types() -> None:
    """Of keys and others; a value that does not fit is refused at its record."""
    types = (("id", "bigint"), ("price", "decimal(10,2)"), ("ok", "boolean"))
    row = {"price": Number("1.5"), "ok": True}
    (found,) = rows(record({"id": 7}, row), types=types)
    assert (found["id"], str(found["price"]), found["ok"]) == (7, "1.50", True)
    good, bad = record({"id": 7}, row), record({"id": 8}, {"price": "x"})
    assert refused(good, good, bad, good, types=types)[0] == 2


def test_a_null_in_the_key() -> None:
    """It tells no rows apart, unless the configuration names the key."""
    null = record({"id": None}, {"name": "a"})
    assert refused(GOOD, null) == (1, "d.t: key column id is null")
    assert [row["id"] for row in rows(GOOD, null, keys=("id",))] == ["1", None]


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
