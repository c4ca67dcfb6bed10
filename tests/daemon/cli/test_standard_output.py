"""A command whose standard output can't be written: one line on standard error, and a status."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.daemon.operations.checks.test_check import TEXT
from tests.test_ratchet import ROOT

COMMANDS = {
    "help": ["--help"],
    "check-config": ["check-config"],
    "tables": ["tables", "list"],
    "jobs": ["jobs", "list", "--json"],
}
"""One of each way of printing: Typer's own, ``print``, Rich's tables, JSON. ``decode`` has tests of
its own."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A configuration."""
    (tmp_path / "config.toml").write_text(TEXT)
    (tmp_path / "config.toml").chmod(0o600)
    return tmp_path


def ended(folder: Path, words: list[str], output: str = "") -> tuple[int, list[str]]:
    """The status, and what is said of the output. ``output``: as a shell says it; the reader of a
    pipe that has gone by default."""
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        ["bash", "-c", f'exec "$@" {output}', "-", sys.executable, "-m", "daemon.cli", *words],
        cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)}, timeout=60, check=False,
        stdout=write, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    os.close(write)
    return done.returncode, [line for line in done.stderr.splitlines() if not usual(line)]


def usual(line: str) -> bool:
    """What these commands say here anyway."""
    return "temporary files" in line


@pytest.mark.parametrize(
    ("output", "said"),
    [(">/dev/full", "can't be written: No space left on device"), (">&-", "is closed")],
    ids=["full", "closed"],
)
@pytest.mark.parametrize("name", COMMANDS)
def test_an_output_that_takes_nothing(folder: Path, name: str, output: str, said: str) -> None:
    """One line, no traceback, and the status says it to a script."""
    found = ended(folder, COMMANDS[name], output)
    assert found == (1, [f"binlogd: the standard output {said}"])


@pytest.mark.parametrize("name", ["check-config", "tables"])
def test_a_reader_that_has_gone(folder: Path, name: str) -> None:
    """As behind ``| head``: nothing is said, as of a program that SIGPIPE ends."""
    assert ended(folder, COMMANDS[name]) == (141, [])
