"""The last lines of the log about a target, as the page shows them."""

from __future__ import annotations

from pathlib import Path

import pytest
import structlog

from daemon.admin import recent_lines as module
from daemon.admin.logs import set_up_logs
from daemon.admin.recent_lines import RecentLines
from daemon.config.sections import LogSection
from settings.secrets import Redactor


@pytest.fixture
def recent(tmp_path: Path) -> RecentLines:
    made = RecentLines()
    section = LogSection(file=str(tmp_path / "log"), format="json")
    set_up_logs(section, Redactor(["tops3cret"]), made)
    return made


def test_the_newest_comes_first_without_secrets(recent: RecentLines) -> None:
    """As far as the log's level lets them through."""
    log = structlog.get_logger()
    log.warning("sink_unavailable", target="l.s.a", reason="login tops3cret refused", attempt=2)
    log.debug("written", target="l.s.a")
    log.info("released", target="l.s.a")
    log.info("released", target="l.s.b")
    log.info("running")
    newest, oldest = recent.of("l.s.a")
    assert newest.endswith("info released")
    assert "warning sink_unavailable" in oldest
    assert "attempt=2" in oldest
    assert "tops3cret" not in oldest
    assert recent.of("l.s.none") == []


def test_memory_is_bounded(recent: RecentLines, monkeypatch: pytest.MonkeyPatch) -> None:
    """By lines, by their length, by targets: those logged about last stay."""
    monkeypatch.setattr(module, "MOST_TARGETS", 2)
    log = structlog.get_logger()
    for number in range(30):
        log.info("released", target="l.s.a", number=number)
    log.info("released", target="l.s.b", why="x" * 9_000)
    assert len(recent.of("l.s.a")) == module.LINES
    assert [len(line) for line in recent.of("l.s.b")] == [module.LONGEST]
    log.info("released", target="l.s.c")
    assert recent.of("l.s.a") == []
    assert len(recent.of("l.s.b")) == 1
