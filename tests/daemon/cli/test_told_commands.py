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


HARMLESS = {"at", "committed", "recorded.frontier", "source.partition", "self._me.pipeline"}
"""Numbers, and names that the configuration holds to letters, digits, ``-`` and ``_``."""
PUT_TOGETHER = {"of", "place", "targets", "which", "word"}
"""Variables that hold words which are quoted where they are made."""
QUOTED = ("quoted(", "quoted_pattern(")


def unquoted(node: ast.JoinedStr) -> Iterator[str]:
    """What of a told command is put in as it is."""
    text, put_in = "", {}
    for part in node.values:
        if isinstance(part, ast.FormattedValue):
            sign = chr(0xE000 + len(put_in))
            put_in[sign] = ast.unparse(part.value)
            text += sign
        else:
            text += str(part.value) if isinstance(part, ast.Constant) else ""
    for told in TOLD.findall(text):
        if told.split()[0] in ROOT_COMMAND.commands:
            yield from (put_in[sign] for sign in told if sign in put_in)


def test_each_name_in_a_told_command_is_quoted() -> None:
    """A table may be called anything: what is pasted into a shell means its name."""
    found = {
        (str(file.relative_to(ROOT)), name)
        for file, tree in trees(SOURCES).items()
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        for name in unquoted(node)
        if name not in HARMLESS | PUT_TOGETHER and not name.startswith(QUOTED)
    }
    assert found == set()
