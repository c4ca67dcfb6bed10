"""Each command that a text of the product or a page of the docs tells can be typed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

import typer.main

from daemon.cli.__main__ import app
from tests.test_ratchet import ROOT, SOURCES, trees

ROOT_COMMAND: Any = typer.main.get_command(app)
TOLD = re.compile(r"binlogd ((?:[^\s`;|>]+ ?)+)")


def texts() -> Iterator[tuple[str, str]]:
    """By place; what is filled in later is ``X``."""
    for file, tree in trees(SOURCES).items():
        joined = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
        inner = {id(part) for node in joined for part in node.values}
        for node in joined:
            parts = (n.value if isinstance(n, ast.Constant) else "X" for n in node.values)
            yield str(file), "".join(map(str, parts))
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and id(node) not in inner:
                yield str(file), " ".join(str(node.value).split("\n"))
    for page in (ROOT / "docs").rglob("*.md"):
        if "decisions" not in page.parts:
            yield from ((str(page), line) for line in page.read_text().splitlines())


def wrong(words: list[str]) -> str | None:
    """What of a told command is none; words that begin no command are no command."""
    command: Any = ROOT_COMMAND
    while (inside := getattr(command, "commands", None)) is not None:
        word = words.pop(0).rstrip(".,:)") if words else ""
        if word not in inside:
            told = command is not ROOT_COMMAND and re.fullmatch(r"[a-z-]+", word)
            return f"{command.name} {word}" if told else None
        command = inside[word]
    known = {"--help"}
    known |= {flag for one in command.params for flag in (*one.opts, *one.secondary_opts)}
    flags = [re.sub(r"[^a-z-].*$", "", word) for word in words if re.match(r"--[a-z]", word)]
    return next(
        (f"{command.name} {flag}" for flag in flags if flag not in {*known, "--help"}), None
    )


def test_each_command_that_is_told_can_be_typed() -> None:
    found = {
        (place, problem)
        for place, text in texts()
        for told in TOLD.findall(text)
        if (problem := wrong(told.split())) is not None
    }
    assert found == set()
