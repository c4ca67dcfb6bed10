"""Whatever holds rows or positions of the source is for the daemon's user alone, by any umask."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from actors.contract.raw_messages import SpillRecord
from actors.runtime.files import close_folder, private_opener, state_id
from actors.staging.staged_tables import ParquetTables
from changes.model.model import TargetName
from daemon.state.dead_letters.lines import append_line, line_of
from daemon.state.offset_file import OffsetFile, lock_state_dir
from daemon.state.spills.file import SpillFolder
from offsets.position import TopicPartition
from offsets.snapshot import Snapshot

TARGET = TargetName("lake", "shop", "orders")


@pytest.fixture(autouse=True)
def open_umask() -> Iterator[None]:
    """A process that would have everything it makes read and written by all."""
    before = os.umask(0)
    yield
    os.umask(before)


def open_to_others(folder: Path) -> list[str]:
    """What others may read or write of a folder and all that is in it."""
    paths = (folder, *folder.rglob("*"))
    return [f"{p.name} {p.stat().st_mode & 0o777:o}" for p in paths if p.stat().st_mode & 0o077]


def fill(state: Path) -> None:
    """Have everything made that Python makes in a state directory."""
    with lock_state_dir(state):
        state_id(state)
        for _ in range(2):  # the second time the first file is kept
            OffsetFile(state, "shop").save(Snapshot("shop", "g"))
        append_line(state / "shop.dead-letters.jsonl", line_of({"a": 1}))
        spills = SpillFolder(state, "shop")
        record = SpillRecord(TopicPartition("t", 0), 1, False, b"a row")
        spills.of(TARGET).append(TARGET, "why", [record])
        spills.of(TARGET).end()
        spills.of(TARGET).append(TARGET, "why", [record])


def test_the_state_directory(tmp_path: Path) -> None:
    """Offsets, spills, letters, lock and id, and the folders they are in."""
    state = tmp_path / "state"
    fill(state)
    names = {path.name.partition(".")[2] for path in state.iterdir()}
    assert {"offsets.json", "offsets.previous.json", "spill", "dead-letters.jsonl"} <= names
    assert len(list((state / "shop.spill").iterdir())) == 2
    assert open_to_others(state) == []


def test_folders_that_an_earlier_version_left_open(tmp_path: Path) -> None:
    """They are closed at the next start."""
    state = tmp_path / "state"
    (state / "shop.spill").mkdir(parents=True, mode=0o755)
    fill(state)
    assert open_to_others(state) == []


def test_a_folder_that_all_share_stays_open(tmp_path: Path) -> None:
    """Whoever names /tmp does not close it to everybody else."""
    tmp_path.chmod(0o1777)
    close_folder(tmp_path)
    assert tmp_path.stat().st_mode & 0o7777 == 0o1777


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")
def test_another_users_folder_stays_as_it_is(tmp_path: Path) -> None:
    """Its owner says who may read it."""
    tmp_path.chmod(0o755)
    os.chown(tmp_path, 65534, 65534)
    close_folder(tmp_path)
    assert tmp_path.stat().st_mode & 0o777 == 0o755


def test_staged_rows(tmp_path: Path) -> None:
    """A file that is made, and one that is written over."""
    path = tmp_path / "1.parquet"
    for _ in range(2):
        ParquetTables().write(str(path), pa.table({"a": [1]}))
        assert path.stat().st_mode & 0o777 == 0o600


def test_a_file_is_closed_from_its_first_moment(tmp_path: Path) -> None:
    """Not made open and closed later: whoever opened it in between would read on."""
    with open(tmp_path / "file", "w", encoding="utf-8", opener=private_opener) as file:
        assert os.fstat(file.fileno()).st_mode & 0o777 == 0o600
