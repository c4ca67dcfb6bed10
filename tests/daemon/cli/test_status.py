"""``binlogd status``: what is not well, what leads out, and an exit status that says it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from daemon.admin.status.health import conditions
from daemon.cli.__main__ import app
from daemon.state.control import ControlServer
from daemon.state.offset_file import lock_state_dir
from tests.daemon.admin.events.test_watch import ILL, WELL
from tests.daemon.operations.checks.test_check import TEXT


def asked(folder: Path, found: dict[str, Any], *options: str) -> Result:
    """The command, beside a daemon with that document."""
    judged = found | {
        "conditions": [one.document("https://d.example/") for one in conditions(found)]
    }
    server = ControlServer(folder, {"status": lambda _: judged})
    server.start()
    try:
        command = ["status", "--state-dir", str(folder), *options]
        return CliRunner().invoke(app, command, env={"COLUMNS": "200"})
    finally:
        server.close()


def test_all_is_well(tmp_path: Path) -> None:
    """Said in the second line; status 0."""
    done = asked(tmp_path, WELL)
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.splitlines()[1] == "  all is well"


def test_what_passes_by_itself_is_no_failure(tmp_path: Path) -> None:
    """A script that waits for a start is not told that somebody has to act."""
    done = asked(tmp_path, WELL | {"state": "starting"})
    assert (done.exit_code, done.stdout.splitlines()[1]) == (0, "  binlogd: is starting")


def test_no_daemon_and_one_that_cannot_be_asked_are_two_statuses(tmp_path: Path) -> None:
    """A watchdog that starts another one goes by the first."""
    command = ["status", "--state-dir", str(tmp_path)]
    assert CliRunner().invoke(app, command).exit_code == 3
    with lock_state_dir(tmp_path):
        done = CliRunner().invoke(app, command)
    assert (done.exit_code, done.stdout) == (1, "")
    assert f"process {os.getpid()} uses {tmp_path}" in done.stderr


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_what_is_ill_is_the_exit_status(tmp_path: Path, options: tuple[str, ...]) -> None:
    """For people and for programs."""
    done = asked(tmp_path, ILL, *options)
    assert (done.exit_code, done.stderr) == (4, "")


def test_each_says_what_leads_out(tmp_path: Path) -> None:
    """The command, the next try, the page of the runbook."""
    lines = [" ".join(line.split()) for line in asked(tmp_path, ILL).stdout.splitlines()]
    assert lines[1] == "5 things are not well"
    (quarantine,) = (line for line in lines if line.startswith("lake.shop.shut: in quarantine"))
    assert quarantine.endswith(
        ": binlogd tables retry lake.shop.shut [https://d.example/runbook/quarantine.md]"
    )
    (failing,) = (line for line in lines if line.startswith("lake: lake.shop.bad0"))
    assert "no space (tried again in " in failing
    found = json.loads(asked(tmp_path, ILL, "--json").stdout)["conditions"]
    (of_sink,) = (one for one in found if one["kind"] == "targets_failing")
    assert of_sink["retry_seconds"] > 0
    assert of_sink["runbook"] == "https://d.example/runbook/target-failing.md"


def test_no_daemon_is_another_status(tmp_path: Path) -> None:
    """3, as of every command that needs one."""
    done = CliRunner().invoke(app, ["status", "--state-dir", str(tmp_path)])
    assert done.exit_code == 3


def test_the_file_that_says_where_is_named(tmp_path: Path) -> None:
    """Where no option names it."""
    path = tmp_path / "shop.toml"
    path.write_text(f'{TEXT}[daemon]\nstate_dir = "."\n')
    server = ControlServer(tmp_path, {"status": lambda _: WELL | {"conditions": []}})
    server.start()
    try:
        done = CliRunner().invoke(app, ["status"], env={"BINLOGD_CONFIG": str(path)})
    finally:
        server.close()
    assert done.exit_code == 0
    said = f"configuration: {path} (named by BINLOGD_CONFIG)"
    assert done.stdout.replace("\n", "").startswith(said)
