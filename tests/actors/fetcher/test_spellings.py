"""Statements in another case than their table's rows: told, never lost without a word."""

from __future__ import annotations

import pytest

from actors.contract import effects as fx
from tests.actors.fetcher.test_rule import ddl, failure, fetcher, message, polled

TRUNCATE = ddl("Orders", "TRUNCATE TABLE Orders")


def told(out: list[object]) -> list[str]:
    return [
        str(effect.fields["what"])
        for effect in out
        if isinstance(effect, fx.Log) and effect.event == "ddl_not_understood"
    ]


@pytest.mark.parametrize("include", [("*",), ("s.orders",)])
def test_a_statement_in_another_case_is_told(include: tuple[str, ...]) -> None:
    """On a server that does not tell case it is of the table whose rows come; be the other name
    routed or not."""
    logic = fetcher(include=include)
    out = logic.handle(polled(message("orders"), TRUNCATE), 0.0)
    (what,) = told(out)
    assert "s.Orders: a statement in another case than the rows, which come of s.orders" in what
    assert failure(out) is None


def test_it_stops_where_no_statement_may_be_lost() -> None:
    """``not_understood = "stop"``."""
    logic = fetcher(ddl_not_understood_stops=True)
    reason = failure(logic.handle(polled(message("orders"), TRUNCATE), 0.0))
    assert reason is not None
    assert "s.Orders" in reason
    assert "TRUNCATE TABLE Orders" in reason


@pytest.mark.parametrize(
    "messages",
    [
        (message("Orders"), message("orders"), TRUNCATE),
        (message("other"), TRUNCATE),
        (message("orders"), ddl("Orders", "ALTER TABLE Orders COMMENT 'x'")),
        (message("orders"), ddl("Orders", "CREATE TABLE Orders (id int)")),
    ],
    ids=["both have rows", "no rows", "changes nothing", "made"],
)
def test_what_says_nothing(messages: tuple[bytes, ...]) -> None:
    """A server that tells case has both; and what does nothing does it to either."""
    assert told(fetcher().handle(polled(*messages), 0.0)) == []
