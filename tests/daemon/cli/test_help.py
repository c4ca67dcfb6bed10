"""Every command: its help has an example that the command line takes, and completion knows it."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main
from typer.testing import CliRunner

from daemon.cli.__main__ import app
from setup.man_pages import completion, page, walk
from tests.needs import tool

ROOT = typer.main.get_command(app)


def commands(command: object = ROOT, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every command that does something, by its words."""
    inside = getattr(command, "commands", None)
    if inside is None:
        yield path
        return
    for name, one in inside.items():
        yield from commands(one, (*path, name))


EVERY = sorted(commands())


def named(path: tuple[str, ...]) -> Any:
    found: Any = ROOT
    for word in path:
        found = found.commands[word]
    return found


def test_there_are_commands() -> None:
    """The walk finds groups' commands, too."""
    assert ("run",) in EVERY
    assert ("tables", "rebuild") in EVERY


@pytest.mark.parametrize("path", EVERY, ids=" ".join)
def test_help_shows_an_example_that_works(path: tuple[str, ...]) -> None:
    """It begins with the command's own words, and its options and arguments are taken."""
    said = CliRunner().invoke(app, [*path, "--help"], env={"COLUMNS": "200"}).stdout
    example = (named(path).epilog or "").removeprefix("Example: ")
    assert f"Example: {example}" in " ".join(said.split())
    words = shlex.split(example.split(" > ")[0])
    assert words[: len(path) + 1] == ["binlogd", *path]
    named(path).make_context("binlogd", words[len(path) + 1 :])


@pytest.mark.parametrize("path", [(), ("status",), ("tables", "list")], ids=" ".join)
def test_help_has_a_short_option(path: tuple[str, ...]) -> None:
    """``-h``, as most programs have it."""
    short, long = (CliRunner().invoke(app, [*path, option]) for option in ("-h", "--help"))
    assert (short.exit_code, short.stdout) == (0, long.stdout)


def test_man_pages_say_what_help_says() -> None:
    """Every command, group and option has its place; no line is a request of roff by chance."""
    pages = {path: page(path, command, "1") for path, command in walk(ROOT)}
    assert set(EVERY) < set(pages)
    for path, text in pages.items():
        for param in named(path).params:
            assert all(opt.replace("-", "\\-") in text for opt in param.opts if opt[:1] == "-")
    assert "binlogd tables rebuild lake.shop.orders" in pages["tables", "rebuild"]
    assert ".SH EXIT STATUS" in pages[()]


def test_man_pages_are_good_roff(tmp_path: Path) -> None:
    """groff has nothing to warn of."""
    groff = tool("groff")
    for path, command in walk(ROOT):
        ran = subprocess.run(
            [groff, "-man", "-ww", "-z", "-Kutf8"], input=page(path, command, "1"),
            capture_output=True, text=True, timeout=20,
        )  # fmt: skip
        assert (ran.returncode, ran.stderr) == (0, "")


BASH = """
. {folder}/bash
COMP_WORDS=(binlogd tables re) COMP_CWORD=2
_binlogd_completion binlogd
echo "${{COMPREPLY[@]}}"
"""
FISH = "source {folder}/fish; complete -C 'binlogd tables re'"
ZSH = (
    "autoload() {{ :; }}; compdef() {{ :; }}; words=(binlogd tables re); CURRENT=3; "
    "_describe() {{ print -l $completions; }}; _arguments() {{ print -r -- $*; }}; . {folder}/zsh"
)


@pytest.mark.parametrize(("shell", "script"), [("bash", BASH), ("fish", FISH), ("zsh", ZSH)])
def test_a_shell_completes(shell: str, script: str, tmp_path: Path) -> None:
    """The shell itself, with the file that the package brings."""
    program = tool(shell)
    (tmp_path / shell).write_text(completion(shell))
    environ = os.environ | {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "HOME": str(tmp_path),
    }  # fmt: skip
    ran = subprocess.run(
        [program, "-c", script.format(folder=tmp_path)], env=environ,
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert "rebuild" in ran.stdout, ran.stderr
    assert "discard" not in ran.stdout
