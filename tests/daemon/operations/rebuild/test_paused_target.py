"""A rebuild of a target that a person has paused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from daemon.cli.__main__ import app
from sources import opening
from tests.daemon.flow import Flow, Log, pipeline

REFUSED_FOR_PAUSE = "copy.shop.a: a person has paused it: `binlogd resume copy.shop.a`"


@pytest.fixture
def flow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Flow]:
    """One pipeline that runs."""
    log = Log()
    monkeypatch.setitem(opening.ADAPTERS, "kafka", log.source)
    made = Flow(tmp_path, log, pipeline("p", "t", "a"))
    made.start()
    yield made
    made.stop()


def test_it_is_refused_with_a_daemon_and_without(flow: Flow) -> None:
    """Else its table would be replaced, though nothing is to be written."""
    flow.insert("t", "a", 5)
    flow.applied("a", 5)
    flow.did("pause", name="copy.shop.a")
    refused = (2, [], [REFUSED_FOR_PAUSE])
    flow.until(lambda: flow.do("tables rebuild", target="copy.shop.a") == refused)
    assert flow.do("tables rebuild", act=False, target="copy.shop.a") == refused
    flow.stop()
    for dry_run in ((), ("--dry-run",)):
        words = ["tables", "rebuild", "copy.shop.a", "-c", str(flow.config), *dry_run]
        done = CliRunner().invoke(app, words)
        assert (done.exit_code, done.stderr) == (2, f"binlogd: {REFUSED_FOR_PAUSE}\n")
    flow.start()
    assert flow.ask("jobs") == []
