"""Each command and option of a release is taken by the next one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import typer.main

from daemon.cli.__main__ import app

RELEASES = sorted((Path(__file__).parent / "releases").glob("*/commands.json"))


@pytest.mark.parametrize("file", RELEASES, ids=lambda path: path.parent.name)
def test_the_next_release_takes_them(file: Path) -> None:
    for words, options in json.loads(file.read_text()).items():
        command: Any = typer.main.get_command(app)
        for word in words.split():
            command = command.commands[word]
        known = {name for one in command.params for name in (*one.opts, *one.secondary_opts)}
        assert set(options) <= known, words
