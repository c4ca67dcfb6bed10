"""The line a minute about what was written."""

from __future__ import annotations

from typing import Any

from structlog.testing import capture_logs

from daemon.admin.minutes import MinuteLog
from tests.daemon.admin.page.documents import status, target


def told(*documents: Any) -> list[dict[str, Any]]:
    """What is logged of documents a minute apart."""
    shown = iter(documents)
    minutes = MinuteLog(lambda: next(shown))
    with capture_logs() as logged:
        for _ in documents:
            minutes.look()
    return [dict(each) for each in logged]


def test_it_says_what_each_pipeline_wrote() -> None:
    """Since the last minute: the first look only counts."""
    before = status([target("lake.s.a", 1_000), target("lake.s.b", 500)], read=2_000)
    after = status(
        [target("lake.s.a", 3_000), target("lake.s.b", 500), target("lake.s.c", 500)],
        read=5_000, holder="lake.s.a", lag=70,
    )  # fmt: skip
    (line,) = told(before, after)
    assert line == {
        "event": "progress", "log_level": "info", "actor": "minutes", "pipeline": "shop",
        "messages": 3_000, "rows": 2_500, "writes": 5, "targets": 2,
        "lag_messages": 70, "lag_seconds": 740.0, "freshness_seconds": 1.2,
    }  # fmt: skip


def test_nothing_is_said_where_nothing_was_written() -> None:
    """Whatever was read."""
    found = [target("lake.s.a", 1_000)]
    assert told(status(found, read=1_000), status(found, read=9_000)) == []


def test_a_pipeline_that_started_again_counts_from_nothing() -> None:
    """Its actors are new ones."""
    (line,) = told(status([target("lake.s.a", 9_000)], read=9_000),
                   status([target("lake.s.a", 500)], read=500))  # fmt: skip
    assert (line["messages"], line["rows"], line["writes"]) == (500, 500, 1)
