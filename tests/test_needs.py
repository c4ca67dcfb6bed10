"""A test that lacks something of the machine is skipped, or fails where that is required."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.needs import missing, tool

REQUIRED = Path(__file__).parent / "required.txt"


def test_what_is_there_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Required or not."""
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))
    assert tool(Path(sys.executable).name) == sys.executable


@pytest.mark.parametrize("require", ["", "strace, mount"])
def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, require: str) -> None:
    """In the line of the skip."""
    monkeypatch.setenv("REQUIRE", require)
    with pytest.raises(pytest.skip.Exception, match="no-such-tool is missing: it is not installed"):
        tool("no-such-tool")


@pytest.mark.parametrize("require", ["postgres", "strace,postgres", "strace postgres"])
def test_what_is_required_and_missing_fails(monkeypatch: pytest.MonkeyPatch, require: str) -> None:
    """So that CI never passes by skipping."""
    monkeypatch.setenv("REQUIRE", require)
    with pytest.raises(pytest.fail.Exception, match="postgres is missing: no server"):
        missing("postgres", "no server")


def test_each_name_of_the_list_is_asked_for() -> None:
    """A name that no test asks for would require nothing."""
    asked = "".join(
        path.read_text()
        for path in Path(__file__).parent.rglob("*.py")
        if path.name != "test_needs.py"
    )
    assert all(f'"{name}"' in asked for name in REQUIRED.read_text().split())
