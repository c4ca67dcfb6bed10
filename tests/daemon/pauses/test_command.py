"""What of a paused pipeline is not written yet."""

from __future__ import annotations

from typing import Any

import pytest

from daemon.pauses.command import undone
from tests.daemon.page.documents import failing, status, target


def test_nothing_is_left_of_a_pipeline_that_is_drained() -> None:
    assert list(undone(status([target("lake.s.t", 500)]), "shop")) == []


def test_what_is_left_is_named() -> None:
    stuck = failing("lake.s.t", "no space")
    found = list(undone(status([stuck], holder="lake.s.t", lag=70), "shop"))
    assert found == [
        "shop.changes:0: 70 messages are not written",
        "lake.s.t: lake.s.t: no space",
    ]


@pytest.mark.parametrize(
    ("changes", "left"),
    [
        ({"stage": "held"}, "it is held: for a moment"),
        ({"stage": "ended", "failure": "a bad record"}, "it is ended: a bad record"),
        ({"pipeline": "other"}, "it was removed"),
    ],
)
def test_one_that_does_not_run_is_not_drained(changes: dict[str, Any], left: str) -> None:
    """Its figures are those of another moment."""
    document = status([])
    document["pipelines"][0] |= changes
    assert list(undone(document, "shop")) == [left]


def test_one_whose_actor_is_busy_is_not_drained() -> None:
    """Its answer is an old one."""
    document = status([])
    document["silent"] = [{"actor": "shop/committer", "seconds": 2.0, "stuck": False}]
    assert list(undone(document, "shop")) == ["shop/committer is busy"]
