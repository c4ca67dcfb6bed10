"""The folder of one replication: nobody else's is written over, a crash leaves a way on."""

from __future__ import annotations

from pathlib import Path

import pytest

from daemon.cli.replicate.folder import Folder, Note, NotOurs

NOTE = Note("mysql://r@h/shop", "lake", (), {"shop.orders": 7})


def test_what_is_written_is_the_owners_alone(tmp_path: Path) -> None:
    """The configuration, the password, the folder."""
    place = Folder(tmp_path)
    assert place.note() is None
    place.begin(NOTE)
    assert place.keep_secret("source", "word") == "${file:binlogd/secrets/source}"
    place.configure("x = 1\n")
    assert place.note() == NOTE
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.rglob("*")}
    assert modes == {
        "config.toml": 0o600, "binlogd": 0o700, "replicate.json": 0o600, "secrets": 0o700,
        "source": 0o600,
    }  # fmt: skip


def test_a_configuration_of_somebody_else_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("mine")
    with pytest.raises(NotOurs, match=r"config\.toml exists already"):
        Folder(tmp_path).note()
    place = Folder(tmp_path / "other")
    place.begin(NOTE)
    place.config.write_text("came meanwhile")
    with pytest.raises(FileExistsError):
        place.configure("ours")
    assert place.config.read_text() == "came meanwhile"


def test_a_folder_of_somebody_else_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "binlogd").mkdir()
    (tmp_path / "binlogd" / "photos").write_text("mine")
    with pytest.raises(NotOurs, match="binlogd exists already"):
        Folder(tmp_path).note()


def test_a_crash_before_the_configuration_leaves_a_way_on(tmp_path: Path) -> None:
    """The next call finds its own note, and begins again."""
    Folder(tmp_path).begin(NOTE)
    again = Folder(tmp_path)
    assert (again.note(), again.config.exists()) == (NOTE, False)
    again.configure("x = 1\n")
    assert again.config.read_text() == "x = 1\n"


@pytest.mark.parametrize("text", ["{", "[]", '{"source": 1}', '{"source": "a", "tables": []}'])
def test_a_damaged_note_is_told(tmp_path: Path, text: str) -> None:
    Folder(tmp_path).begin(NOTE)
    (tmp_path / "binlogd" / "replicate.json").write_text(text)
    with pytest.raises(NotOurs, match="can't be read"):
        Folder(tmp_path).note()


def test_something_else_is_told_by_name() -> None:
    assert NOTE.unlike(Note("mysql://r@h/shop", "lake", (), {})) is None
    told = NOTE.unlike(Note("mysql://r@h/other", "lake", (), {}))
    assert told == "source is mysql://r@h/shop here, and mysql://r@h/other was requested"
    assert NOTE.unlike(Note("mysql://r@h/shop", "x", (), {})) == (
        "into is lake here, and x was requested"
    )
    assert NOTE.unlike(Note("mysql://r@h/shop", "lake", ("orders",), {})) == (
        "tables is all here, and orders was requested"
    )
