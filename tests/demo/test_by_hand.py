"""The README's commands by hand, as they stand, in an empty folder."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from actors.runtime.java import CHECKOUT
from actors.runtime.programs import free_port

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

BLOCK = re.compile(r"### SQLite.*?\n```\n(.*?)```", re.S)
PORT = "9092"
PAGE = "127.0.0.1:9464"


def commands() -> list[str]:
    """The lines of the block."""
    found = BLOCK.search((CHECKOUT / "README.md").read_text())
    assert found is not None
    return found[1].splitlines()


class Shell:
    """A shell in a folder, with the checkout's programs on its path."""

    def __init__(self, folder: Path) -> None:
        bin_ = CHECKOUT / ".venv" / "bin"
        self.folder = folder
        self.environ = {**os.environ, "PATH": f"{bin_}:{os.environ['PATH']}", "COLUMNS": "120"}
        self.broker: subprocess.Popen[str] | None = None

    def run(self, command: str) -> str:
        done = subprocess.run(
            ["bash", "-c", command], cwd=self.folder, env=self.environ, text=True,
            capture_output=True, timeout=120,
        )  # fmt: skip
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        return done.stdout

    def start(self, command: str) -> None:
        """The command that ends with ``&``, until it says that it is ready."""
        self.broker = subprocess.Popen(
            ["bash", "-c", f"exec {command.partition('&')[0]}"], cwd=self.folder, text=True,
            env=self.environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        assert self.broker.stdout is not None
        said = self.broker.stdout.readline()
        assert said.startswith("broker ready on "), said


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    made = Shell(tmp_path)
    yield made
    if made.broker is not None:
        made.broker.send_signal(signal.SIGTERM)
        made.broker.communicate(timeout=60)


@pytest.fixture
def java(shell: Shell) -> Path:
    """The Java that commands find first. It says when it is asked for, and fails."""
    program = shell.folder / "java" / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\ntouch {shell.folder}/asked\nexit 1\n")
    program.chmod(0o755)
    return program.parents[1]


def run_all(shell: Shell, lake: str = "", java: Path | None = None) -> float:
    """Each command right after the one before; only ports differ, which may be taken.

    ``lake`` replaces the SQLite file, ``java`` is what they have after the broker. Returns seconds.
    """
    broker, produce, init, run, query = commands()
    port, page = str(free_port()), f"127.0.0.1:{free_port()}"
    began = time.monotonic()
    shell.start(broker.replace(PORT, port))
    if java is not None:
        shell.environ["JAVA_HOME"] = str(java)
    assert "1 record to shop" in shell.run(produce.replace(PORT, port))
    asked = init.replace(PORT, port).replace("shop.db", lake or "shop.db")
    assert "shop: maxwell-json, 1 table in 1 record" in shell.run(asked)
    config = shell.folder / "config.toml"
    config.write_text(config.read_text().replace(PAGE, page))
    shell.run(run)
    head, row, count = shell.run(query).splitlines()
    assert (head.split(), row.split(), count) == (["id", "item"], ["1", "tea"], "1 row")
    return time.monotonic() - began


def test_five_commands_lead_to_a_row(shell: Shell, java: Path) -> None:
    """Within two minutes of a busy machine. Nothing but the broker looks for Java."""
    assert run_all(shell, java=java) < 120
    assert not (shell.folder / "asked").exists()


def test_the_same_five_make_a_lake(shell: Shell) -> None:
    """With the folder that the README names."""
    assert "`--lake ./lake` makes the same a lake" in (CHECKOUT / "README.md").read_text()
    run_all(shell, "./lake")
    assert (shell.folder / "lake" / "catalog.db").exists()
