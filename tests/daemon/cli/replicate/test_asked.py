"""What the options say: where tables go, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from daemon.cli.base.address import BadAddress
from daemon.cli.replicate.asked import Replication, asked_for


def asked(source: str, into: str, folder: Path) -> Replication:
    return asked_for(source, into, (), folder, "", None, None)


def test_a_lake_below_the_folder_is_named_from_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The configuration's folder may be moved with all that is in it."""
    monkeypatch.chdir(tmp_path)
    assert asked("mysql://r@h/shop", "./lake", tmp_path).into == "lake"
    assert asked("mysql://r@h/shop", "lake", tmp_path / "x").into == str(tmp_path / "lake")
    assert asked("mysql://r@h/shop", "sqlite:a.file", tmp_path).into == "sqlite:a.file"
    assert asked("mysql://r@h/shop", "s3://bucket/x", tmp_path).into == "s3://bucket/x"


@pytest.mark.parametrize(
    ("source", "into"),
    [
        ("mysql://r@127.0.0.1/shop", "mariadb://w@localhost/copy"),
        ("postgresql://r@127.0.0.1/shop", "postgresql://w@localhost/shop"),
    ],
)
def test_the_source_is_no_place_for_its_copy(tmp_path: Path, source: str, into: str) -> None:
    """Its own tables would be written over."""
    with pytest.raises(BadAddress, match="is the source itself"):
        asked(source, into, tmp_path)


def test_another_database_of_the_same_server_is_one(tmp_path: Path) -> None:
    found = asked("postgresql://r@127.0.0.1/shop", "postgresql://w@127.0.0.1/copy", tmp_path)
    assert found.into == "postgresql://w@127.0.0.1/copy"
    assert asked("mysql://r@127.0.0.1/x", "postgresql://w@127.0.0.1/x", tmp_path).target


def test_an_unknown_word_for_tls_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadAddress, match="off, required or verified"):
        asked_for("mysql://r@h/x", "lake", (), tmp_path, "", "maybe", None)
