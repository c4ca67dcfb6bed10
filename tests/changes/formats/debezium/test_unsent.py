"""A placeholder is text like any other where the connector sends every value."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import pytest

from changes.formats.debezium.json import DebeziumJson
from changes.formats.engine.format import RowChange, pack
from changes.model.model import HAS_PREFIX, BadRecord, FormatOptions, Mode
from changes.routes.fold import fold
from tests.changes.formats.debezium.messages import (
    MYSQL,
    POSTGRES,
    UNAVAILABLE,
    Fields,
    change,
    decode,
    dumps,
    envelope,
    record,
    rows,
    typed,
)

Source = Mapping[str, Any]

MARIADB = {**MYSQL, "connector": "mariadb"}
WHOLE = [MYSQL, MARIADB]
PARTIAL = [
    POSTGRES, {**POSTGRES, "connector": "oracle"}, {**MYSQL, "connector": "vitess"},
    {**MYSQL, "connector": "TiCDC"}, {"db": "shop", "table": "orders"},
    {**POSTGRES, "name": "mysql"},
]  # fmt: skip
for_each_whole = pytest.mark.parametrize("source", WHOLE, ids=["mysql", "mariadb"])
for_each_partial = pytest.mark.parametrize(
    "source", PARTIAL, ids=["postgresql", "oracle", "vitess", "ticdc", "none", "named mysql"]
)
COUNTS = [1, 2, 700]
"""Records read with care, then in blocks, then in several of these."""


def row(key: int, name: str | None = UNAVAILABLE) -> dict[str, Any]:
    """A row of a table whose records have no schema."""
    return {"id": key, "name": name}


def was_sent(*values: bytes, **options: Any) -> list[bool]:
    """By row whether the name came with it."""
    return [each.get(HAS_PREFIX + "name", True) for each in rows(*values, **options)]


@for_each_whole
@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("op", ["c", "u"])
def test_text_that_equals_the_placeholder(source: Source, count: int, op: str) -> None:
    """MySQL's and MariaDB's connectors send all of a row: an update to it is one."""
    found = rows(*[change(op, row(key), row(key, "a"), source=source) for key in range(count)])
    assert [each["name"] for each in found] == [UNAVAILABLE] * count
    assert HAS_PREFIX + "name" not in found[0]


@for_each_whole
@pytest.mark.parametrize("count", COUNTS)
def test_every_form_of_the_placeholder(source: Source, count: int) -> None:
    """Bytes, JSON and binary.handling.mode = hex, with schema: all is what somebody stored."""
    octets = UNAVAILABLE.encode()
    fields: Fields = {
        "id": "int32", "b": "bytes", "h": "string", "j": ("string", "io.debezium.data.Json"),
        "g": ("struct", "io.debezium.data.geometry.Geometry"),
    }  # fmt: skip
    after = {
        "b": base64.b64encode(octets).decode(), "h": octets.hex(), "j": f'["{UNAVAILABLE}"]',
        "g": {"wkb": "AQEAACDmEAAAAAAA/IPXl8EAAAD8g9eXwQ==", "srid": 4326},
    }  # fmt: skip
    given = [typed("u", fields, {"id": key, **after}, source=source) for key in range(count)]
    table = decode(*given).table
    assert not [name for name in table.column_names if name.startswith(HAS_PREFIX)]
    assert table.slice(count - 1).to_pylist()[0]["b"] == octets
    assert [table[name].null_count for name in "bhjg"] == [0, 0, 0, 0]


@for_each_whole
@pytest.mark.parametrize("before", COUNTS)
def test_a_changed_key_of_such_a_row(source: Source, before: int) -> None:
    """Both halves are whole, wherever the first one is."""
    new, old = [("__debezium.newkey", b"x")], [("__debezium.oldkey", b"x")]
    others = [change("c", row(key), source=source) for key in range(10, 10 + before)]
    halves = [
        change("d", None, row(1), key={"id": 1}, headers=new, source=source),
        change("c", row(2), headers=old, source=source),
    ]
    for values in ((*others, *halves), (*others, halves[1])):
        assert rows(*values)[-1]["name"] == UNAVAILABLE
        assert was_sent(*values)[-1]


@for_each_partial
@pytest.mark.parametrize("count", COUNTS)
def test_the_placeholder_of_connectors_that_leave_values_out(source: Source, count: int) -> None:
    """And of those that are not known, or not named."""
    given = [change("u", row(key), source=source) for key in range(count)]
    assert was_sent(*given) == [False] * count
    with pytest.raises(BadRecord, match="name: a new row without this value"):
        rows(*[change("u", row(1), source=source)] * (count - 1), change("c", row(9)), *given[:1],
             change("c", row(2), source=source))  # fmt: skip


@pytest.mark.parametrize("partial", PARTIAL)
@pytest.mark.parametrize("whole", WHOLE)
@pytest.mark.parametrize("first", [0, 1])
def test_records_of_two_connectors_in_one_target(
    partial: Source, whole: Source, first: int
) -> None:
    """They look alike and meet in one block: each value is judged by its own record."""
    sources = [partial, whole] * 350
    given = [change("u", row(key), source=each) for key, each in enumerate(sources)]
    assert was_sent(*given[first:]) == [each is whole for each in sources[first:]]
    names = [each["name"] for each in rows(*given[first:])]
    assert set(names[1 - first :: 2]) == {UNAVAILABLE}


def test_a_name_of_such_a_connector_among_the_values() -> None:
    """It is a value of that row, not its connector."""
    given = [
        change("u", {**row(key), "db": "mysql"}, {"id": key, "db": "mariadb"}, source=POSTGRES)
        for key in range(5)
    ]
    assert was_sent(*given) == [False] * 5


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize(
    ("marks", "sent"),
    [
        ({"__op": "u"}, False),
        ({"__op": "u", "__connector": "postgresql"}, False),
        ({"__op": "u", "__connector": "mysql"}, True),
        ({"__op": "u", "__source_connector": "mariadb"}, True),
        ({"__op": "u", "source": {"connector": "mysql"}}, False),
    ],
)
def test_flattened_rows(marks: dict[str, Any], sent: bool, count: int) -> None:
    """They name their connector where add.fields has it; a column ``source`` is a column."""
    names = {"__db": "shop", "__table": "orders"}
    given = [record({**row(key), **names, **marks}, {"id": key}) for key in range(count)]
    assert was_sent(*given) == [sent] * count


@for_each_whole
def test_a_placeholder_that_the_pipeline_names(source: Source) -> None:
    """Whoever writes it there knows that it stands for what was not sent, in all records."""
    given = [change("u", row(key), source=source) for key in range(3)]
    assert was_sent(*given, extra={"unavailable_value": UNAVAILABLE}) == [False] * 3
    assert was_sent(*given, extra={"unavailable_value": "other"}) == [True] * 3


@for_each_whole
@pytest.mark.parametrize("count", COUNTS)
def test_a_changelog_shows_the_text(source: Source, count: int) -> None:
    """In inserts, in updates of which the old row is told or not, and in deletes."""
    inserted = [change("c", row(1), source=source)] * count
    given = [
        change("u", row(1), row(1, "a"), source=source),
        change("u", row(1), source=source),
        change("d", None, row(1), source=source),
    ]
    found = decode(*inserted, *given, *given, mode=Mode.APPEND).table
    assert set(found["name"].to_pylist()) == {UNAVAILABLE}


@pytest.mark.parametrize("source", [*WHOLE, *PARTIAL])
def test_decode_agrees_with_the_decoder(source: Source) -> None:
    """What ``binlogd decode`` shows is what becomes of the row."""
    value = change("u", row(1), row(1), source=source)
    for options in ({}, {"unavailable_value": UNAVAILABLE}):
        (told,) = DebeziumJson(FormatOptions(extra=options)).explain(value)
        assert isinstance(told, RowChange)
        assert told.after is not None
        assert told.before is not None
        (sent,) = was_sent(value, extra=options)
        assert (("name" in told.after), ("name" in told.before)) == (sent, sent)


def test_the_fold_takes_such_an_update() -> None:
    """The row before it in the batch had another text."""
    found = decode(change("c", row(1, "a"), source=MARIADB), change("u", row(1), source=MARIADB))
    (net,) = fold(found.table, found.schema.keys).to_pylist()
    assert net["name"] == UNAVAILABLE


def test_a_source_that_can_not_be_read_is_refused() -> None:
    """Whether the value was sent is not known: that record alone is bad, by its place."""
    value = dumps(envelope("u", row(7), source={**MYSQL, "file": "@"})).replace(b"@", b"\xff")
    given = [change("u", row(key), source=MYSQL) for key in range(5)]
    with pytest.raises(
        BadRecord, match=r"name: the value is not .* can't decode byte 0xff"
    ) as error:
        decode(*given, pack(b'{"id":7}', value), *given)
    assert error.value.index == 5


@pytest.mark.parametrize("count", COUNTS)
def test_a_fold_over_both_kinds_of_an_update(count: int) -> None:
    """A key that two connectors write, one after the other."""
    given = [change("c", row(1, "a"), source=MYSQL), change("u", row(1), source=POSTGRES)]
    found = decode(*given * count, change("u", row(1), source=MYSQL))
    (net,) = fold(found.table, found.schema.keys).to_pylist()
    assert net["name"] == UNAVAILABLE
    found = decode(*given * count)
    (net,) = fold(found.table, found.schema.keys).to_pylist()
    assert net["name"] == "a"
