"""Debezium's signals: what is understood, and that nothing else is taken for it."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.operations.signals import NotForUs, Signal, SignalRefused, read_signal

PIPELINES = ("crm", "shop")


def read(value: Any, key: bytes | None = None) -> Signal:
    text = value if isinstance(value, bytes) else json.dumps(value).encode()
    return read_signal(key, text, PIPELINES)


def execute(*collections: str, **more: Any) -> dict[str, Any]:
    data = {"data-collections": list(collections), "type": "INCREMENTAL"} | more
    return {"id": "d139b9b7", "type": "execute-snapshot", "data": data}


def test_a_snapshot_is_asked_for_as_of_debezium() -> None:
    """The example of its documentation, with and without its key and id."""
    value = execute("schema1.table1", "schema1.table2")
    tables = ("schema1.table1", "schema1.table2")
    assert read(value) == Signal("d139b9b7", "execute", PIPELINES, tables)
    del value["id"]
    assert read(value, b"shop") == Signal("", "execute", ("shop",), tables)


def test_data_may_be_a_text() -> None:
    """As in the column of the signalling table."""
    value = execute("shop.orders")
    value["data"] = json.dumps(value["data"])
    assert read(value).tables == ("shop.orders",)


@pytest.mark.parametrize(
    ("expression", "pattern"),
    [
        ("shop.orders", "shop.orders"),
        (r"shop\.orders", "shop.orders"),
        (r"shop\..*", "shop.*"),
        (r"shop\.order_.*", "shop.order_*"),
        (r".*\.orders", "*.orders"),
        (".*", "*"),
        (" shop.orders ", "shop.orders"),
    ],
)
def test_names_and_any_are_understood_of_regular_expressions(expression: str, pattern: str) -> None:
    """They become the patterns of routes."""
    assert read(execute(expression)).tables == (pattern,)


@pytest.mark.parametrize("expression", ["shop.(a|b)", "shop.o?", "shop.[ab]", "^shop.a$", "a.b+"])
def test_other_expressions_are_refused(expression: str) -> None:
    """They would mean other tables."""
    with pytest.raises(SignalRefused, match="only names and"):
        read(execute(expression))


def test_less_than_a_table_is_refused() -> None:
    """A load of some rows would remove the others."""
    conditions = [{"data-collection": "shop.orders", "filter": "color='blue'"}]
    with pytest.raises(SignalRefused, match="'additional-conditions' is not supported"):
        read(execute("shop.orders", **{"additional-conditions": conditions}))
    with pytest.raises(SignalRefused, match="'surrogate-key' is not supported"):
        read(execute("shop.orders", **{"surrogate-key": "id"}))
    with pytest.raises(SignalRefused, match="of type 'blocking'"):
        read(execute("shop.orders", type="blocking"))
    assert read(execute("shop.orders", **{"additional-conditions": []})).tables


@pytest.mark.parametrize(
    ("type_", "request_"),
    [("pause-snapshot", "pause"), ("resume-snapshot", "resume"), ("stop-snapshot", "cancel")],
)
def test_snapshots_are_paused_resumed_and_stopped(type_: str, request_: str) -> None:
    """All of them, where no table is named."""
    assert read({"id": "1", "type": type_}) == Signal("1", request_, PIPELINES)  # type: ignore[arg-type]
    if type_ == "stop-snapshot":
        data = {"type": "incremental", "data-collections": ["shop.orders"]}
        assert read({"type": type_, "data": data}).tables == ("shop.orders",)


def test_a_signal_for_another_connector_is_its_own() -> None:
    """A topic may be shared with Debezium."""
    with pytest.raises(NotForUs, match="'dbserver1' names none of the pipelines"):
        read(execute("shop.orders"), b"dbserver1")


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (b"", "not a JSON object"),
        (b"\xff\xfe", "not a JSON object"),
        (b"[1]", "not a JSON object"),
        ({}, "its type is None"),
        ({"type": "log", "data": {"message": "x"}}, "its type is 'log'; known: execute-snapshot"),
        ({"type": ["execute-snapshot"]}, "its type is"),
        ({"type": "pause-snapshot", "id": 7}, '"id" is no text'),
        ({"type": "pause-snapshot", "id": "x" * 43}, '"id" is no text'),
        ({"type": "execute-snapshot", "data": "{"}, '"data" is not a JSON object'),
        ({"type": "execute-snapshot", "data": [1]}, '"data" is not an object'),
        ({"type": "execute-snapshot"}, "names no table"),
        (execute(), "names no table"),
        ({"type": "execute-snapshot", "data": {"data-collections": "a.b"}}, "not a list of texts"),
        (execute("orders"), "not of the form database.table"),
        (execute(""), "not of the form database.table"),
    ],
)
def test_what_is_no_signal_is_refused_with_its_reason(value: Any, why: str) -> None:
    """And nothing is done."""
    with pytest.raises(SignalRefused, match=why):
        read(value)


@given(st.binary(max_size=60) | st.none(), st.binary(max_size=20) | st.none())
def test_no_bytes_break_the_reader(value: bytes | None, key: bytes | None) -> None:
    """They are a signal, or refused."""
    with suppress(SignalRefused):
        assert read_signal(key, value, PIPELINES).pipelines


@pytest.mark.parametrize(
    "value",
    [
        {"id": "\ud800", "type": "stop-snapshot"},
        {"id": "x", "type": "execute-snapshot", "data": "\udcff"},
        {"id": "x", "type": "stop-snapshot", "data": '{"data-collections": ["a.\\ud800"]}'},
        {"id": "x", "type": "a" * 1_000_000},
    ],
)
def test_what_is_no_text_is_refused_in_few_words(value: dict[str, str]) -> None:
    """Half a character anywhere, a text within the text included; a megabyte in the type."""
    with pytest.raises(SignalRefused) as refused:
        read(value)
    assert len(str(refused.value)) < 500
