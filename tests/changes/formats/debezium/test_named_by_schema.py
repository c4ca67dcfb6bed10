"""Flattened rows that name no table: their schema's name, made of a table's, may be of two."""

from __future__ import annotations

from typing import Any

import pytest

from actors.contract import effects as fx
from actors.contract import messages as msg
from changes.formats.auto import AutoFormat
from changes.formats.debezium.json import DebeziumJson
from changes.formats.engine.format import mark_of
from changes.model.model import FormatOptions
from tests.actors.fetcher.test_passed_over import ONE, batch, fetcher
from tests.changes.formats.debezium.messages import record, structure

FIELDS = {"id": "int32", "__table": "string", "__db": "string"}


def flat(stem: str, number: int = 1, **members: Any) -> bytes:
    """A row of ExtractNewRecordState with a schema."""
    schema = structure(f"{stem}.Value", FIELDS)
    return record({"schema": schema, "payload": {"id": number, **members}}, {"id": number})


def fresh() -> DebeziumJson:
    return DebeziumJson(FormatOptions())


def test_a_table_that_its_schema_alone_names_is_told_once() -> None:
    """`a b` and `a_b` would be one table, and equal keys overwrite each other."""
    format_ = fresh()
    heads = list(format_.heads([flat("s.shop.a_b", n) for n in range(3)]))
    assert {str(head.table) for head in heads} == {"shop.a_b"}
    (told,) = format_.notes()
    assert "shop.a_b" in told
    assert "s.shop.a_b.Value" in told
    assert "add.fields" in told
    assert list(format_.heads([flat("s.shop.a_b")])) == heads[:1]
    assert format_.notes() == ()


@pytest.mark.parametrize(
    "row",
    [
        flat("s.shop.orders"),
        flat("s.shop.a_b", __table="a b", __db="shop"),
        flat("s.shop.a_b", __table="a_b"),
    ],
)
def test_names_that_leave_no_doubt(row: bytes) -> None:
    """Nothing is said of these."""
    format_ = fresh()
    format_.peek(row)
    assert format_.notes() == ()


@pytest.mark.parametrize(
    ("stem", "told", "wanted"),
    [
        ("s.shop.a_b", "a b", "shop.a b"),
        ("s.shop.a_b", "a_b", "shop.a_b"),
        ("s.shop.x.y", "x.y", "shop.x.y"),
        ("s.shop.__", "\U0001f600", "shop.\U0001f600"),
        ("s.shop.all", "orders1", "shop.all"),
    ],
)
def test_the_rows_own_word_goes_before_the_schemas(stem: str, told: str, wanted: str) -> None:
    """With ``add.fields=table`` alone the schema has only the database to tell."""
    assert str(fresh().peek(flat(stem, __table=told)).table) == wanted


def test_a_database_that_its_schema_alone_names_is_told() -> None:
    """Two of them would be one, too."""
    format_ = fresh()
    format_.peek(flat("s.my_shop.orders", __table="orders"))
    assert len(format_.notes()) == 1


def test_auto_passes_it_on() -> None:
    """Whatever the format."""
    format_ = AutoFormat(FormatOptions())
    format_.peek(mark_of("debezium-json") + flat("s.shop.a_b"))
    assert len(format_.notes()) == 1
    assert format_.notes() == ()


def test_it_is_a_warning() -> None:
    """Of the batch in which it shows."""
    out = fetcher().handle(msg.Polled((batch(ONE, 0, flat("s.shop.a_b")),)), 0.0)
    (log,) = [effect for effect in out if isinstance(effect, fx.Log)]
    assert (log.level, log.event) == ("warning", "table_named_by_schema")
    assert "shop.a_b" in str(log.fields["what"])
