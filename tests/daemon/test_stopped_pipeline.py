"""A pipeline that stops leaves the daemon up: it says why, and a command starts it again."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from daemon.state.offset_file import OffsetFile
from settings.exit import Exit
from sources import opening
from tests.daemon.flow import Log, pipeline
from tests.daemon.web_flow import WebFlow
from tests.integration.rig import canal

GARBAGE = b"{"


class Stopped(WebFlow):
    """One pipeline."""

    def sql(self, statement: str) -> None:
        """What somebody does to the tables by hand."""
        with sqlite3.connect(self.folder / "copy.db", timeout=60) as file:
            file.execute(statement)
        file.close()

    @property
    def p(self) -> dict[str, Any]:
        return dict(self.pipelines()["p"])

    def until_stopped(self) -> dict[str, Any]:
        """Its condition."""
        self.until(lambda: self.p["failure"] and self.p["stage"] == "ended")
        (found,) = [
            dict(each) for each in self.ask("status")["conditions"]
            if each["kind"] == "pipeline_failed"
        ]  # fmt: skip
        return found


@pytest.fixture
def flow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stopped]:
    log = Log()
    monkeypatch.setitem(opening.ADAPTERS, "kafka", log.source)
    made = Stopped(tmp_path, log, pipeline("p", "t", "[ab]"))
    made.start()
    yield made
    if not made.ended_already():
        made.stop()


def test_the_daemon_stays_and_says_why_until_it_is_ended(
    flow: Stopped, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not ready, and page, metrics and commands answer. Its end has the failure's status."""
    flow.insert("t", "a", 3)
    flow.log.produce("t", GARBAGE)
    found = flow.until_stopped()
    assert "t:0 offset 3: " in found["line"]
    assert found["command"] == "binlogd resume p"
    assert flow.count("a") == 3
    status, ready = flow.get("/readyz")
    assert status == 503
    assert "pipeline p: failed: t:0 offset 3: " in ready
    assert flow.get("/healthz")[0] == 200
    assert 'binlogd_pipeline_failed{pipeline="p"} 1.0' in flow.get("/metrics")[1]
    page = flow.get("/")[1]
    assert "t:0 offset 3: " in page
    assert "binlogd resume p" in page
    assert "binlogd reload" in page
    flow.stop(Exit.PIPELINE_FAILED)
    said = capsys.readouterr().err
    assert said.count("offset 3: ") == 1
    assert "with its cause gone: `binlogd resume p`" in said


def test_the_first_bad_record_is_named_and_not_the_one_that_is_found_first(flow: Stopped) -> None:
    """The reader finds what is no message before the decoder has the value before it."""
    flow.insert("t", "a", 1)
    bad = {"id": 2, "name": "x", "qty": "many"}
    flow.log.produce("t", canal("shop.a", "INSERT", [bad]), GARBAGE)
    found = flow.until_stopped()
    assert "t:0 offset 1: " in found["line"]
    assert flow.count("a") == 1
    snapshot = OffsetFile(flow.folder / "state", "p").load().snapshot
    assert snapshot is not None
    assert [place.frontier for place in snapshot.partitions.values()] == [1]
    flow.stop(Exit.PIPELINE_FAILED)


def test_a_reload_that_leaves_the_cause_out_starts_it_again(flow: Stopped) -> None:
    """In the same process, from where it stopped; then it ends in good order. What would be given
    up is named first."""
    flow.insert("t", "a", 1)
    bad = {"id": 99, "name": "x", "qty": "many"}
    flow.log.produce("t", canal("shop.b", "INSERT", [bad]))
    flow.insert("t", "a", 1)
    flow.until_stopped()
    flow.write(pipeline("p", "t", "a"))
    (refused,) = flow.reload()[1]
    assert refused.endswith("--discard copy.shop.b gives that up")
    assert flow.reload(discard=["copy.shop.b"])[1] == []
    flow.applied("a", 2)
    flow.until(lambda: flow.get("/readyz")[0] == 200)
    assert [p["failure"] for p in flow.pipelines().values()] == [None]


def test_a_reload_that_stores_bad_records_apart_starts_it_again(flow: Stopped) -> None:
    flow.log.produce("t", GARBAGE)
    flow.insert("t", "a", 1)
    flow.until_stopped()
    flow.write(pipeline("p", "t", "[ab]", 'on_bad_record = "dead-letter"'))
    assert flow.reload()[1] == []
    flow.applied("a", 1)


def test_resume_starts_it_again_once_the_cause_is_gone(flow: Stopped) -> None:
    """Too early it stops at the same record. A pause before it is forgotten."""
    flow.insert("t", "b", 1)
    flow.applied("b", 1)
    flow.sql('CREATE UNIQUE INDEX one_name ON "shop.b" (name)')
    flow.insert("t", "b", 1)
    assert "copy.shop.b" in flow.until_stopped()["line"]
    assert flow.did("resume", name="p") == "pipeline p starts again where it stopped"
    assert "copy.shop.b" in flow.until_stopped()["line"]
    flow.did("pause", name="p", reason="repair")
    flow.sql("DROP INDEX one_name")
    flow.did("resume", name="p")
    flow.applied("b", 2)
    flow.until(lambda: (flow.p["failure"], flow.p["paused_by_a_person"]) == (None, None))
    assert flow.did("resume", name="p") == "pipeline p is not paused"


def test_exit_when_stopped_ends_the_process_with_status_1(flow: Stopped) -> None:
    """For who has a service manager start it again."""
    flow.stop()
    text = flow.config.read_text()
    flow.config.write_text(text.replace("[daemon]", "[daemon]\nexit_when_stopped = true"))
    flow.start()
    flow.log.produce("t", GARBAGE)
    assert flow.ended() == [Exit.PIPELINE_FAILED]


def test_the_page_shows_the_configuration_and_what_had_no_change_since_the_start(
    flow: Stopped,
) -> None:
    """The configuration in force, also after a reload."""
    flow.insert("t", "a", 1)
    flow.applied("a", 1)
    flow.stop()
    flow.start()
    assert flow.until(lambda: flow.p["targets_without_news"]) == ["copy.shop.a"]
    assert "1 target without a change since the start" in flow.get("/")[1]
    flow.write(pipeline("p", "t", "a"))
    assert flow.reload()[1] == []
    text = flow.get("/config")[1]
    assert "shop.a" in text
    assert "shop.[ab]" not in text
    flow.insert("t", "a", 1)
    flow.applied("a", 2)
    flow.until(lambda: flow.p["targets_without_news"] == [])
