"""A command imports what it needs: little, for a list of commands or a question to the daemon."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import typer.main

from daemon.cli.__main__ import app
from daemon.cli.table import COMMANDS
from daemon.operations.registry import PLACES, operations
from tests.daemon.cli.test_help import EVERY, named
from tests.daemon.operations.checks.test_check import TEXT

HEAVY = {
    "confluent_kafka", "cryptography", "fastavro", "google.protobuf", "numpy", "prometheus_client",
    "psycopg", "py4j", "pyarrow", "pymysql", "pyspark", "sortedcontainers",
    # Of our own: who imports one of these has the libraries of all formats, sinks or databases.
    "changes.formats", "daemon.config.config", "daemon.operations.registry", "databases.opening",
    "sources.opening", "sparkwriter.sinks",
}  # fmt: skip

OF_THE_DAEMON = {
    "actors.contract.effects", "databases.opening", "sources.base.port", "structlog",
}  # fmt: skip
"""What the daemon has and a list of what is recorded does without: a third of its start."""

PROGRAM = """
import atexit, json, sys
sys.argv = ["binlogd", *{words!r}]
out = open({out!r}, "w")
atexit.register(lambda: (json.dump(sorted(sys.modules), out), out.close()))
from daemon.cli.__main__ import main
main()
"""


def imported(folder: Path, *words: str) -> set[str]:
    """What one command has imported at its end."""
    out = folder / "modules.json"
    program = PROGRAM.format(words=list(words), out=str(out))
    subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=60, check=False)
    return set(json.loads(out.read_text()))


@pytest.mark.parametrize(
    "words",
    [("--help",), ("--version",), ("tables", "--help"), ("status", "--help"), ("status",)],
    ids=" ".join,
)
def test_it_starts_light(tmp_path: Path, words: tuple[str, ...]) -> None:
    """Each of these libraries is a tenth of a second of processor time, or more."""
    if words == ("status",):
        (tmp_path / "c.toml").write_text(f'{TEXT}[daemon]\nstate_dir = "state"\n')
        words = ("status", "--config", str(tmp_path / "c.toml"))
    found = imported(tmp_path, *words)
    assert "daemon.cli.table" in found
    assert found & HEAVY == set()


OF_A_CONFIGURATION = {"changes.formats", "daemon.config.config"}
"""What knows all formats, sinks and databases by their sections, and imports none of them."""

OF_LETTERS = {"actors.contract.effects", "sources.base.port"}


@pytest.mark.parametrize(
    ("words", "needed"),
    [
        ("offsets show", set()),
        ("tables list", {"sources.opening"}),
        ("jobs list", {"sources.opening"}),
        ("dead-letters list", {"sources.opening", *OF_LETTERS}),
        ("pause shop", {"daemon.operations.registry", "sources.opening", "structlog", *OF_LETTERS}),
        # Its secrets are looked up, so its format is tried.
        ("cuts list", {"numpy", "pyarrow", "sources.opening"}),
        # Iceberg's sink has the session in its hand, which starts only to connect.
        (
            "check-config",
            {
                *("confluent_kafka", "google.protobuf", "numpy", "py4j", "pyarrow", "pyspark"),
                *("databases.opening", "sources.opening", "sparkwriter.sinks", "structlog"),
                *OF_LETTERS,
            },
        ),
    ],
)
def test_what_reads_a_configuration_imports_what_it_needs(
    tmp_path: Path, words: str, needed: set[str]
) -> None:
    """And nothing of what carries it out: Arrow alone is a third of a list's processor time."""
    (tmp_path / "c.toml").write_text(f'{TEXT}[daemon]\nstate_dir = "state"\n')
    found = imported(tmp_path, *words.split(), "--config", str(tmp_path / "c.toml"))
    assert found & (HEAVY | OF_THE_DAEMON) == needed | OF_A_CONFIGURATION


def test_each_operation_is_at_its_place() -> None:
    """The registry names a command's operation without importing it."""
    assert [operation.words for operation in operations().values()] == list(PLACES)


@pytest.mark.parametrize("name", sorted(HEAVY | OF_THE_DAEMON))
def test_the_names_of_what_is_heavy_are_of_today(name: str) -> None:
    """A module that was renamed would be missed without a word."""
    assert find_spec(name) is not None


def test_the_table_has_each_command_as_its_own_help_begins() -> None:
    """The list of commands is of the table, the help of the command itself."""
    assert [tuple(command.words.split()) for command in COMMANDS] != []
    assert sorted(tuple(command.words.split()) for command in COMMANDS) == EVERY
    for command in COMMANDS:
        help_ = named(tuple(command.words.split())).help
        assert " ".join(help_.partition("\n\n")[0].split()) == command.help


@pytest.mark.parametrize("theirs", [None, "logfire"])
def test_an_import_leaves_collector_and_plugins_as_the_caller_had_them(
    theirs: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A daemon that collected no garbage would grow, and a function's child has its own plugins."""
    monkeypatch.delenv("PYDANTIC_DISABLE_PLUGINS", raising=False)
    if theirs is not None:
        monkeypatch.setenv("PYDANTIC_DISABLE_PLUGINS", theirs)
    root = typer.main.get_command(app)
    with pytest.raises(SystemExit):
        root.main(["tables", "list", "--config", "/nowhere"])
    assert gc.isenabled()
    assert os.environ.get("PYDANTIC_DISABLE_PLUGINS") == theirs


def test_an_unknown_command_is_answered_with_one_that_is_like_it() -> None:
    """Of the names alone."""
    root = typer.main.get_command(app)
    with pytest.raises(Exception, match="Did you mean 'tables'"):
        root.main(["tabels", "list"], standalone_mode=False)
