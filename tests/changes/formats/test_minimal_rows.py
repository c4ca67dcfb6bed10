"""Rows as other tools write them: Flink's and SeaTunnel's sinks leave out all but the row."""

from __future__ import annotations

from typing import Any

import pytest

from changes.formats.engine.format import pack
from changes.model.model import OP, BadMessage, BadRecord, TableName
from tests.changes.formats.json_messages import decode, made, ogg, rows

ROWS = {
    "maxwell-json": [
        b'{"data":{"id":1,"v":"a"},"type":"insert"}',
        b'{"data":{"id":1,"v":"a"},"type":"delete"}',
        b'{"data":{"id":1,"v":"b"},"type":"insert"}',
    ],
    "ogg-json": [
        b'{"before":null,"after":{"id":1,"v":"a"},"op_type":"I"}',
        b'{"before":{"id":1,"v":"a"},"after":null,"op_type":"D"}',
        b'{"before":null,"after":{"id":1,"v":"b"},"op_type":"I"}',
    ],
}
TABLE = {"default_database": "shop", "default_table": "orders"}


def values(name: str) -> list[bytes]:
    """The messages, as the format wants them."""
    return [pack(None, value) if made(name).keyed else value for value in ROWS[name]]


@pytest.mark.parametrize("name", ROWS)
def test_the_table_is_configured(name: str) -> None:
    """Without names of their own rows are of the table that the configuration names."""
    told = values(name)
    heads = list(made(name, **TABLE).heads(told))
    assert [head.table for head in heads] == [TableName("shop", "orders")] * 3
    assert [made(name, **TABLE).peek(value) for value in told] == heads
    found = rows(name, *told, keys=("id",), **TABLE)
    assert [(row[OP], row["id"], row["v"]) for row in found] == [
        ("U", "1", "a"), ("D", "1", None), ("U", "1", "b"),
    ]  # fmt: skip
    (shown,) = made(name, **TABLE).explain(told[0])
    assert shown.table == TableName("shop", "orders")


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("extra", [{}, {"default_database": "shop"}])
def test_no_table_is_refused(name: str, extra: Any) -> None:
    """The reason names the option that is missing."""
    part = "default_table" if extra else "default_database"
    with pytest.raises(BadMessage, match=part):
        made(name, **extra).peek(values(name)[0])


def test_a_misfit_of_an_unnamed_table() -> None:
    """The reason does not begin with a table that nobody named."""
    with pytest.raises(BadRecord) as error:
        decode("maxwell-json", pack(None, b'{"data":{"v":1},"type":"insert"}'), keys=("id",))
    assert error.value.reason == "key column id is missing"


def test_the_row_after_a_delete_does_not_matter() -> None:
    """Some writers put an empty one there; what ends is the key before."""
    told = [ogg("D", {}, {"id": n, "v": "a"}) for n in range(3)]
    assert [(row[OP], row["id"]) for row in rows("ogg-json", *told)] == [
        ("D", "0"), ("D", "1"), ("D", "2"),
    ]  # fmt: skip
