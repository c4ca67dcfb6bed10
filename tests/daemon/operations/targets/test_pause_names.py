"""A target is paused by its name as ``tables list`` shows it, whatever the source calls it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from sources import opening
from tests.daemon.flow import Flow, Log, pipeline
from tests.integration.rig import canal


@pytest.fixture
def flow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Flow]:
    """One pipeline that takes all tables."""
    log = Log()
    monkeypatch.setitem(opening.ADAPTERS, "kafka", log.source)
    made = Flow(tmp_path, log, pipeline("p", "t", "*"))
    made.start()
    yield made
    made.stop()


def test_a_name_with_a_dot_or_a_backtick(flow: Flow) -> None:
    """It stands between backticks, with its own doubled."""
    for table in ("a.b", "a`b"):
        message = json.loads(canal("shop.q", "INSERT", [{"id": 1, "name": "x", "qty": 1}]))
        flow.log.produce("t", json.dumps(message | {"table": table}).encode())
    names = ["copy.shop.`a.b`", "copy.shop.`a``b`"]
    flow.until(lambda: sorted(t["target"] for t in flow.pipelines()["p"]["targets"]) == names)
    for name in names:
        flow.did("pause", name=name)
        assert name in flow.ask("status")["paused_targets"]
        flow.did("resume", name=name)
    assert flow.ask("status")["paused_targets"] == {}
