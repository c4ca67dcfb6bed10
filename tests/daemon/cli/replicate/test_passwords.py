"""Passwords come from a file, the environment or a prompt, and stay out of everything else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from daemon.cli.replicate.passwords import NoPassword, from_environment, password_of


def test_a_file_comes_before_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "pw"
    file.write_text("of the file\n")
    found = password_of("r@h", file, "--password-file", "PW", {"PW": "of the environment"})
    assert found == ("of the file", file)
    assert password_of("r@h", None, "--password-file", "PW", {"PW": "x y"}) == ("x y", None)


def test_an_empty_word_of_the_environment_is_none() -> None:
    """Servers that ask for no password."""
    assert password_of("r@h", None, "--password-file", "PW", {"PW": ""}) == ("", None)


def test_a_file_that_can_t_be_read_is_told_with_its_option(tmp_path: Path) -> None:
    with pytest.raises(NoPassword, match=r"--password-file: file .*gone: can't be read"):
        password_of("r@h", tmp_path / "gone", "--password-file", "PW", {})


def test_without_a_terminal_the_ways_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", open(os.devnull))  # noqa: SIM115
    with pytest.raises(NoPassword, match="--password-file FILE, or the environment variable PW"):
        password_of("r@h", None, "--password-file", "PW", {})


def test_no_child_gets_the_environments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BINLOGD_PASSWORD", "word")
    found = from_environment("r@h", None, "--password-file", "BINLOGD_PASSWORD")
    assert found.text == "word"
    assert "BINLOGD_PASSWORD" not in os.environ
