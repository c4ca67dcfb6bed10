"""What status, page and metrics say of a pipeline's cuts."""

from __future__ import annotations

import io
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from rich.console import Console

from actors.contract.figures import CutFigures
from daemon.admin.status.health import conditions
from daemon.admin.status.metrics import StatusCollector
from daemon.admin.status.status_table import print_status
from daemon.admin.status.stores_health import last_cut
from offsets.cuts import Cut
from tests.daemon.admin.page.documents import NOW_MS, P0, status, target

NOW = NOW_MS // 1000
LEFT = {"lake.s.u": "its messages are in its spill", "lake.s.v": "it is being loaded"}


def made(left_out: dict[str, str] | None = None, boundary: Any = "transaction") -> Cut:
    """Three minutes ago, of one table."""
    versions = {"lake.s.t": "11"}
    return Cut(NOW - 180, "shop", boundary, {P0: 9}, NOW_MS, "x", versions, left_out or {})


def shown(figures: CutFigures | None, **more: Any) -> dict[str, Any]:
    return status([target("lake.s.t", 5)], cuts=figures, **more)


@pytest.mark.parametrize(
    ("figures", "uncut", "expected"),
    [
        (None, "not asked for", []),
        (CutFigures(None, None), None, []),
        (CutFigures(made(), None), None, []),
        (CutFigures(made(LEFT), None), None, [
            ("cut_incomplete", "passing", f"cut {NOW - 180} is without lake.s.u: its messages are "
             "in its spill; and without 1 other table"),
        ]),
        (CutFigures(made(LEFT), "away", NOW - 60), None, [
            ("cuts_not_made", "passing", "no cut is made for 60 s: away"),
        ]),
        (CutFigures(made(), "away", NOW - 180), None, [
            ("cuts_not_made", "ill", "no cut is made for 3 min: away"),
        ]),
        (CutFigures(None, None), "the log has 2 partitions", [
            ("cuts_not_made", "ill", "no cut is made: the log has 2 partitions"),
        ]),
    ],
)  # fmt: skip
def test_what_readers_of_cuts_miss_is_told(
    figures: CutFigures | None, uncut: str | None, expected: list[tuple[str, str, str]]
) -> None:
    """A pipeline that makes none has nothing to tell."""
    found = conditions(shown(figures, uncut=uncut))
    assert [(one.kind, one.level, one.line) for one in found] == expected


def test_the_last_cut_shows_in_the_table_and_as_metrics() -> None:
    found = shown(CutFigures(made(LEFT, "time"), "away", NOW - 60))
    console = Console(file=io.StringIO(), width=200)
    print_status(console, found)
    line = f"cut {NOW - 180}, 3 min ago: 1 table, without 2, by time"
    assert f"  cuts: {line}\n" in console.file.getvalue()  # type: ignore[attr-defined]
    assert last_cut(shown(CutFigures(None, None))["pipelines"][0]["cuts"]) == (
        "no cut in this run yet"
    )
    registry = CollectorRegistry()
    registry.register(StatusCollector(lambda: found))
    lines = generate_latest(registry).decode().splitlines()
    told = [each for each in lines if each.startswith("binlogd_cut")]
    assert told == [
        'binlogd_cut_age_seconds{pipeline="shop"} 180.0',
        'binlogd_cut_tables_left_out{pipeline="shop"} 2.0',
        'binlogd_cut_failing{pipeline="shop"} 1.0',
    ]
    none = CollectorRegistry()
    none.register(StatusCollector(lambda: shown(None)))
    assert "binlogd_cut_age_seconds{" not in generate_latest(none).decode()
