"""Files of the state: whole, and their owner's alone, whoever gives a command."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from actors.runtime.files import make_private_folder, private_opener, write_durably
from daemon.operations.engine.record import JobRequest, new_job
from daemon.operations.engine.store import JobStore
from daemon.state.offset_file import OffsetFile, lock_state_dir
from daemon.state.pauses import Pause, Pauses
from offsets.snapshot import Snapshot

DAEMON = 65534

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="root alone makes files in others' folders")


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """The state directory of another user."""
    folder = tmp_path / "state"
    folder.mkdir(mode=0o700)
    os.chown(folder, DAEMON, DAEMON)
    return folder


@as_root
def test_what_root_does_to_a_daemons_files_does_not_shut_it_out(state: Path) -> None:
    """An offline command as root, and the service starts again as its own user."""
    with lock_state_dir(state):
        OffsetFile(state, "p").save(Snapshot("p", "g"))
        OffsetFile(state, "p").save(Snapshot("p", "g"))
        JobStore(state).save(new_job(JobRequest("load", "p", ("a.b.c",)), 1, "load-1"))
        Pauses(state).put("p", Pause(1))
    found = {path.name: path.stat() for path in state.rglob("*")}
    assert {"lock", "version", "p.offsets.json", "p.offsets.previous.json", "jobs", "load-1.json",
            "pauses.json"} <= found.keys()  # fmt: skip
    assert {(one.st_uid, one.st_mode & 0o077) for one in found.values()} == {(DAEMON, 0)}


@as_root
def test_roots_own_files_stay_its_own(state: Path, tmp_path: Path) -> None:
    """Also one that a link in another user's folder leads to."""
    mine = tmp_path / "mine"
    mine.write_text("x")
    (state / "link").symlink_to(mine)
    with open(state / "link", "a", opener=private_opener) as file:
        file.write("y")
    make_private_folder(tmp_path / "folder")
    write_durably(tmp_path / "folder" / "file", "x")
    for path in (mine, tmp_path / "folder", tmp_path / "folder" / "file"):
        assert path.stat().st_uid == 0


def test_an_error_names_the_file(tmp_path: Path) -> None:
    """A full disk is met by a number; 'No space left on device' alone says nothing."""
    (tmp_path / "x.new").symlink_to("/dev/full")
    with pytest.raises(OSError, match=r"No space left on device: '.*/x'"):
        write_durably(tmp_path / "x", "text")
    assert not (tmp_path / "x").exists()
