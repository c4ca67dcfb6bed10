"""``binlogd dead-letters discard``, and the condition that tells of open letters."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs
from typer.testing import CliRunner, Result

from daemon.admin.status.health import conditions
from daemon.cli.__main__ import app
from daemon.state.dead_letters.files import add_mark
from settings.exit import Exit
from sources import opening
from sources.base.letter import LetterId, Mark
from tests.daemon.flow import Flow, Log, pipeline
from tests.daemon.state.dead_letters.letters import S0, TARGET, dead, store

LIST = "(binlogd dead-letters list)"
LETTERS = 'on_bad_record = "dead-letter"'


@pytest.fixture
def flow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Flow]:
    """A daemon that is not started yet; an earlier one stored letters 1 to 4, and the first was
    replayed."""
    log = Log()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(opening.ADAPTERS, "kafka", log.source)
    made = Flow(tmp_path, log, pipeline("p", "t", "a", LETTERS))
    state = tmp_path / "state"
    state.mkdir()
    for offset in range(1, 5):
        store(state).keep(dead(offset))
    add_mark(state, Mark.now(LetterId("p", S0, 1, str(TARGET)), "binlog:0:9"))
    with capture_logs():
        yield made


def run(flow: Flow, *words: str) -> Result:
    return CliRunner().invoke(app, ["dead-letters", *words, "-c", str(flow.config)])


def states(flow: Flow) -> list[str]:
    listed: list[dict[str, Any]] = json.loads(run(flow, "list", "--json").stdout)
    return [each["state"] for each in listed]


def told(flow: Flow) -> list[str]:
    return [one.line for one in conditions(flow.ask("status")) if one.key.kind == "dead_letters"]


def test_a_start_tells_of_letters_that_earlier_runs_left_until_each_is_given_up(flow: Flow) -> None:
    """Not only of this run's: their rows are missing all the same. The daemon sees it at once."""
    flow.start()
    flow.until(lambda: told(flow) == [f"3 dead letters are not replayed {LIST}"])
    done = run(flow, "discard", "binlog:0:2", "binlog:0:3", "--execute")
    assert (done.exit_code, done.stdout.splitlines()[-1]) == (0, "2 letters discarded")
    flow.until(lambda: told(flow) == [f"1 dead letter is not replayed {LIST}"])
    assert run(flow, "discard", "--all", "--execute").exit_code == 0
    flow.until(lambda: not told(flow))
    assert flow.ask("status")["pipelines"][0]["dead_letters"]["stored"] == 0
    flow.stop()
    assert states(flow) == ["replayed", "discarded", "discarded", "discarded"]


def test_nothing_is_given_up_without_execute_nor_unasked(flow: Flow) -> None:
    """It names each, and why it could not be applied."""
    said = run(flow, "discard", "--all")
    assert said.stdout.splitlines() == [
        *(f"binlog:0:{offset} of lake.db.t is given up: bad" for offset in (2, 3, 4)),
        "nothing was changed: --execute does it",
    ]
    assert run(flow, "discard", "--execute").exit_code == Exit.UNUSABLE.value
    assert states(flow) == ["replayed", "open", "open", "open"]


def test_a_discarded_letter_is_shown_as_such_and_filtered(flow: Flow) -> None:
    """One that is replayed stays replayed."""
    run(flow, "discard", "binlog:0:1", "binlog:0:2", "--execute")
    assert states(flow) == ["replayed", "discarded", "open", "open"]
    listed = json.loads(run(flow, "list", "--state", "discarded", "--json").stdout)
    assert [each["id"] for each in listed] == ["binlog:0:2"]
    assert listed[0]["replayed"] is None
    assert "discarded:" in run(flow, "show", "binlog:0:2").stdout
