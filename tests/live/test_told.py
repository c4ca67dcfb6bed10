"""What a daemon's log says of tables."""

from __future__ import annotations

import json

import pytest

from tests.live.told import OF_A_TARGET, read


def line(event: str, **more: str) -> str:
    """A line of the log."""
    return json.dumps({"event": event, "pipeline": "p", **more})


@pytest.mark.parametrize("event", OF_A_TARGET)
def test_an_event_that_names_a_target_tells_of_that_table_alone(event: str) -> None:
    """Others of the pipeline may not differ."""
    told = read([line(event, target="lake.shop.`x.y`", reason="why")], "p", {})
    assert told.about(("shop", "x.y")) == f"{event}: why"
    assert told.about(("shop", "orders")) == ""


def test_a_mark_tells_of_its_table_as_long_as_it_is_recorded() -> None:
    """The event alone does not: the table may have been filled again since."""
    said = [line("rows_may_differ", target="lake.shop.orders", what="MODIFY")]
    told = read(said, "p", {"lake.shop.items": "MODIFY", "lake.shop.orders": None})
    assert told.about(("shop", "items")) == "rows_may_differ: MODIFY"
    assert told.about(("shop", "orders")) == ""


def test_a_pipeline_that_stopped_tells_of_all_its_tables() -> None:
    """And of no other pipeline's."""
    lines = ["", '{"event": "pipeline_fai', line("pipeline_failed", reason="a statement")]
    assert read(lines, "p", {}).about(("shop", "orders")).endswith("a statement")
    assert read(lines, "q", {}).about(("shop", "orders")) == ""


def test_a_statement_without_target_tells_of_the_tables_it_names() -> None:
    """The log has no more than its text."""
    told = read([line("ddl_not_understood", what="ALTER TABLE orders FROB")], "p", {})
    assert "FROB" in told.about(("shop", "orders"))
    assert told.about(("shop", "items")) == ""


def test_what_tells_of_no_difference_is_passed_over() -> None:
    """A write, or a warning that is tried again."""
    lines = [line("written", target="lake.shop.orders"), line("sink_unavailable", reason="away")]
    assert read(lines, "p", {}).about(("shop", "orders")) == ""
