"""Secrets that are rotated while the daemon runs are read again, and nothing else is."""

from __future__ import annotations

from pathlib import Path

import pytest

from daemon.config.config import Config
from daemon.config.file import load
from settings.rotation import RotatedSettings

TEXT = """
[kafka]
bootstrap.servers = "127.0.0.1:1"
[sink.lake]
kind = "iceberg"
[sink.lake.catalog]
type = "rest"
uri = "http://127.0.0.1:1"
token = "Bearer ${file:token}"
s3.secret-access-key = "stands-in-the-file"
[pipeline.shop]
topics = ["shop"]
format = "canal-json"
target = "lake.{database}.{table}"
"""


@pytest.fixture
def config(tmp_path: Path) -> Config:
    """A configuration whose token is in a file beside it."""
    (tmp_path / "token").write_text("first-token\n")
    (tmp_path / "config.toml").write_text(TEXT)
    return load(tmp_path / "config.toml")


@pytest.fixture
def rotated(config: Config) -> RotatedSettings:
    """The settings as a writer uses them."""
    return RotatedSettings(config, config.sink["lake"].settings(), "lake")


def test_what_did_not_change_is_not_outdated(rotated: RotatedSettings) -> None:
    """The start's own settings need no overriding."""
    assert not rotated.outdated()
    assert rotated.take() == {}


def test_a_new_secret(tmp_path: Path, config: Config, rotated: RotatedSettings) -> None:
    """It is outdated until it is taken, and is said nowhere."""
    (tmp_path / "token").write_text("second-token\n")
    assert rotated.outdated()
    assert rotated.take() == {"catalog.token": "Bearer second-token"}
    assert not rotated.outdated()
    assert config.redactor.text("first-token second-token") == "*** ***"
    (tmp_path / "token").write_text("first-token\n")
    assert rotated.outdated()
    assert rotated.take() == {}


def test_a_file_that_is_away(tmp_path: Path, rotated: RotatedSettings) -> None:
    """Whoever rotates it may write it anew at this moment: what was valid last stays."""
    (tmp_path / "token").write_text("second-token\n")
    rotated.take()
    (tmp_path / "token").unlink()
    assert not rotated.outdated()
    assert rotated.take() == {"catalog.token": "Bearer second-token"}


def test_other_edits_wait_for_a_restart(tmp_path: Path, rotated: RotatedSettings) -> None:
    """An edited address, or a secret that stands in the file, does not move a running writer."""
    text = TEXT.replace("127.0.0.1:1", "127.0.0.1:2").replace("stands-in-the-file", "x-y-z-1234")
    (tmp_path / "config.toml").write_text(text)
    assert not rotated.outdated()
    assert rotated.take() == {}


def test_a_secret_that_other_settings_contain(tmp_path: Path) -> None:
    """Which settings are read again is told by where they refer, not by what they hold."""
    (tmp_path / "token").write_text("1")
    (tmp_path / "config.toml").write_text(TEXT)
    config = load(tmp_path / "config.toml")
    rotated = RotatedSettings(config, config.sink["lake"].settings(), "lake")
    (tmp_path / "config.toml").write_text(TEXT.replace("127.0.0.1:1", "127.0.0.1:2"))
    (tmp_path / "token").write_text("2")
    assert rotated.take() == {"catalog.token": "Bearer 2"}
