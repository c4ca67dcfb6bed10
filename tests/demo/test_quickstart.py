"""The quickstarts in ``docs`` as written: their commands in order, and what they print."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from actors.runtime.java import CHECKOUT
from demo.servers.apicurio import Apicurio
from demo.servers.jars import server_jars
from demo.servers.s3 import ObjectStore
from tests.needs import collector_jars, missing, needed

pytestmark = [pytest.mark.long, pytest.mark.integration, pytest.mark.timeout(900)]

DOCS = CHECKOUT / "docs"
FOLDER = CHECKOUT / "var" / "quickstart"
BLOCK = re.compile(r"(?:<!-- (?P<note>[^>]*) -->\n)?```console\n(?P<text>.*?)```", re.S)
END = "end-of-the-command"


class Block(NamedTuple):
    """Commands of the page, and what it says that they print."""

    note: str
    commands: str
    output: list[str]


def blocks(page: str) -> list[Block]:
    """``$`` begins a command, ``>`` goes on with it, everything else is printed."""
    found = []
    for match in BLOCK.finditer(page):
        lines = match["text"].splitlines()
        commands = [line[2:] for line in lines if line.startswith(("$ ", "> "))]
        output = [line for line in lines if not line.startswith(("$ ", "> "))]
        found.append(Block(match["note"] or "", "\n".join(commands), output))
    return found


def matches(shown: list[str], printed: list[str]) -> bool:
    """Whether a command printed what is shown: ``…`` alone is any lines, in a line any text."""
    parts = [r"(?:.*\n)*?" if line == "…" else f"{_line(line)}\n" for line in shown]
    return re.fullmatch("".join(parts), "".join(f"{line}\n" for line in printed)) is not None


def _line(shown: str) -> str:
    return ".*".join(map(re.escape, shown.split("…")))


class Terminal:
    """A shell that a person types into."""

    def __init__(self) -> None:
        self._shell = subprocess.Popen(
            ["bash"],
            cwd=CHECKOUT,
            env=os.environ | {"PYTHONPATH": str(CHECKOUT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def type(self, commands: str, end: str | None = None) -> list[str]:
        """Run commands; gives what they print until all have ended, or until a line ``end``."""
        assert self._shell.stdin is not None
        assert self._shell.stdout is not None
        self._shell.stdin.write(f"{commands}\necho {END}=$?\n")
        self._shell.stdin.flush()
        printed = []
        for line in self._shell.stdout:
            if line.startswith(END):
                assert line == f"{END}=0\n", (commands, printed)
                return printed
            printed.append(line.rstrip("\n"))
            if end is not None and matches([end], printed[-1:]):
                return printed
        raise AssertionError((commands, printed))

    def close(self) -> None:
        """Ctrl-C, and the end of the shell."""
        os.killpg(self._shell.pid, signal.SIGINT)
        assert self._shell.stdin is not None
        self._shell.stdin.close()
        self._shell.wait(60)


Terminals = tuple[Terminal, Terminal, Terminal]
NOTES = ("", "second terminal", "third terminal")
"""By terminal the note before a block that is typed there. In the others a block runs on."""


@pytest.fixture
def terminals() -> Iterator[Terminals]:
    """Three, in the checkout, with nothing of an earlier run."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    found = Terminal(), Terminal(), Terminal()
    # The last one first: what runs there reads from what runs in the second.
    ends = [one.close for one in reversed(found)]
    watch = threading.Timer(850, lambda: [end() for end in ends])
    watch.start()
    yield found
    watch.cancel()
    for end in ends:
        end()
    shutil.rmtree(FOLDER, ignore_errors=True)


def test_the_lake_on_s3(terminals: Terminals, tmp_path: Path) -> None:
    """Its servers are moto and a REST catalog."""
    server_jars("rest")
    ObjectStore(tmp_path)  # skips, or fails, where moto is missing
    follow(DOCS / "quickstart-s3.md", terminals)


def test_debezium_with_avro(terminals: Terminals, tmp_path: Path) -> None:
    """Its servers are PostgreSQL, Kafka Connect and a schema registry."""
    if not list(Path("/usr/lib/postgresql").glob("*/bin/initdb")):
        missing("postgres", "it is not installed")
    with needed():
        Apicurio(tmp_path)
    follow(DOCS / "quickstart-debezium.md", terminals)


def test_from_a_database(terminals: Terminals) -> None:
    """Its server is MariaDB."""
    if shutil.which("mariadbd", path="/usr/sbin:/usr/bin") is None:
        missing("mariadb", "it is not installed")
    collector_jars()
    follow(DOCS / "quickstart.md", terminals)


def follow(path: Path, terminals: Terminals) -> None:
    """Ten commands or so, from nothing to tables that are equal."""
    page = blocks(path.read_text(encoding="utf-8"))
    assert sum(line.startswith("$ ") for line in path.read_text().splitlines()) <= 12
    for one in terminals[1:]:
        one.type(". .venv/bin/activate")
    for block in page:
        if block.note.startswith("not run"):
            continue
        begun = time.monotonic()
        at = NOTES.index(block.note) if block.note in NOTES else 0
        printed = terminals[at].type(block.commands, block.output[-1] if at else None)
        print(f"{time.monotonic() - begun:.1f} s: {block.commands.splitlines()[0]}")
        if block.note != "output varies":
            assert matches(block.output, printed), (block, printed)


def test_what_is_shown_is_compared() -> None:
    """Text of its own only where the page says that it varies."""
    assert matches(["a", "…", "b … c"], ["a", "x", "y", "b 17 c"])
    assert not matches(["a"], ["a", "b"])
    assert not matches(["a … c"], ["a b"])
    assert matches(["…"], [])
