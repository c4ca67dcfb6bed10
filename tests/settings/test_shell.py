"""Names in commands that are printed: a shell makes the name again, a pattern matches it alone."""

from __future__ import annotations

import os
import subprocess
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from settings.shell import quoted, quoted_pattern

NAMES = [
    "lake.shop.orders", "lake.shop.two words", "lake.shop.it's", 'lake.shop."x"', "lake.shop.*",
    "lake.shop.`a``b`; rm -rf /", "lake.shop.$HOME", "lake.shop.a[b]?", "lake.shop.\\n",
    "lake.'x'\u202e", "lake.shop.line\nend", "-rf", "", "lake.shop.größe", "lake.shop.a\u00a0b",
]  # fmt: skip


def through_a_shell(word: str) -> str:
    shown = subprocess.run(
        ["bash", "-c", f"printf %s {word}"], capture_output=True, check=True,
        env={**os.environ, "LC_ALL": "C.UTF-8"},
    )  # fmt: skip
    return shown.stdout.decode()


@pytest.mark.parametrize("name", NAMES)
def test_a_shell_makes_the_name_again(name: str) -> None:
    assert through_a_shell(quoted(name)) == name
    assert quoted(name).isprintable()


@pytest.mark.parametrize("name", NAMES)
def test_a_pattern_matches_its_name_alone(name: str) -> None:
    """Also where the name holds what a pattern means otherwise."""
    pattern = through_a_shell(quoted_pattern(name))
    assert fnmatchcase(name, pattern)
    assert not fnmatchcase(name.replace("*", "items").replace("?", "x") + "_log", pattern)


def test_a_plain_name_stays_as_it_is() -> None:
    """And a path is a name."""
    assert quoted("lake.shop.orders") == quoted_pattern("lake.shop.orders") == "lake.shop.orders"
    assert quoted(Path("/etc/my binlogd/config.toml")) == "'/etc/my binlogd/config.toml'"
