"""What of a paused pipeline is not written yet."""

from __future__ import annotations

from typing import Any

import pytest

from daemon.admin.status.observer import Answers
from daemon.admin.status.status import About, document
from daemon.operations.targets.pause import undone
from daemon.state.pauses import Pause
from tests.daemon.admin.page.documents import failing, status, target


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


def test_a_clock_that_was_set_back_makes_no_negative_pause() -> None:
    """It began in the future, as it seems."""
    about = About("run-1", 1, {"p": "g"}, 1, 120.0)
    document_ = document(about, Answers(), 5_000, 1.0, pauses={"p": Pause(9_000, "why")})
    assert document_["pipelines"][0]["paused_by_a_person"] == {
        "seconds": 0.0, "since_ms": 9_000, "reason": "why"
    }  # fmt: skip


def test_one_whose_actor_is_busy_is_not_drained() -> None:
    """Its answer is an old one."""
    document = status([])
    document["silent"] = [{"actor": "shop/committer", "seconds": 2.0, "stuck": False}]
    assert list(undone(document, "shop")) == ["shop/committer is busy"]
