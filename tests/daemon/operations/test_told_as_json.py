"""``--json`` of an operation is a document however it ends: its reader finds the reason."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from daemon.cli.__main__ import app
from daemon.operations.registry import operations
from tests.daemon.operations.test_every_operation import CASES

FILE = """
[daemon]
state_dir = "state"
[kafka]
"bootstrap.servers" = "127.0.0.1:1"
[sink.copy]
kind = "sqlite"
path = "copy.db"
[pipeline.p]
topics = ["t"]
format = "canal-json"
target = "copy.{database}.{table}"
"""


def told(words: str, file: Path, text: str) -> Result:
    file.write_text(text)
    command = [*shlex.split(f"{words} {CASES[words].given} --json"), "-c", str(file)]
    found = CliRunner().invoke(app, command)
    document = json.loads(found.stdout)
    if operations()[words].plain_json:
        assert document == []
    else:
        said = [f"binlogd: {line}" for line in document["problems"]]
        assert (document["status"], said) == (found.exit_code, found.stderr.splitlines())
    return found


@pytest.mark.parametrize(
    "words",
    [words for words, each in operations().items() if each.needs_daemon and not each.plans_offline],
)
def test_where_no_daemon_runs(words: str, tmp_path: Path) -> None:
    found = told(words, tmp_path / "config.toml", FILE)
    assert (found.exit_code, operations()[words].needs_daemon in found.stderr) == (3, True)


@pytest.mark.parametrize("words", sorted(CASES))
def test_where_the_configuration_has_a_mistake(words: str, tmp_path: Path) -> None:
    found = told(words, tmp_path / "config.toml", "[daemon]\nstate = 1\n")
    assert (found.exit_code, "daemon.state: unknown key" in found.stderr) == (2, True)
