"""The local offset file on a real disk."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from daemon.state.offset_file import OffsetFile, StateDirBusy, lock_state_dir
from offsets.position import TopicPartition
from offsets.snapshot import PartitionState, Snapshot

SOURCE = TopicPartition("binlog", 0)


def snapshot(frontier: int) -> Snapshot:
    return Snapshot("shop", "g", partitions={SOURCE: PartitionState(frontier)})


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    """The newest snapshot comes back."""
    file = OffsetFile(tmp_path, "shop")
    file.save(snapshot(1))
    file.save(snapshot(2))
    assert file.load().snapshot == snapshot(2)


def test_nothing_saved_is_nothing_damaged(tmp_path: Path) -> None:
    """A first start is no incident."""
    loaded = OffsetFile(tmp_path, "shop").load()
    assert (loaded.snapshot, loaded.damage) == (None, ())


def test_a_damaged_file_is_reported_and_the_previous_one_used(tmp_path: Path) -> None:
    """One bad sector costs a few seconds of replay, not the positions."""
    file = OffsetFile(tmp_path, "shop")
    file.save(snapshot(1))
    file.save(snapshot(2))
    file.path.write_text(file.path.read_text()[:50])
    loaded = file.load()
    assert loaded.snapshot == snapshot(1)
    assert len(loaded.damage) == 1
    assert str(file.path) in loaded.damage[0]


def test_two_damaged_files_are_both_named(tmp_path: Path) -> None:
    """Then Kafka and the sinks are what is left, loudly."""
    file = OffsetFile(tmp_path, "shop")
    file.save(snapshot(1))
    file.save(snapshot(2))
    file.path.write_bytes(b"\xff\xfe")
    file.previous.write_text("")
    loaded = file.load()
    assert loaded.snapshot is None
    assert [str(file.path) in loaded.damage[0], str(file.previous) in loaded.damage[1]] == [
        True,
        True,
    ]


def test_a_missing_file_beside_a_previous_one_is_reported(tmp_path: Path) -> None:
    """Somebody removed it: the older one is taken, and that is said."""
    file = OffsetFile(tmp_path, "shop")
    file.save(snapshot(1))
    file.save(snapshot(2))
    file.path.unlink()
    loaded = file.load()
    assert loaded.snapshot == snapshot(1)
    assert "missing" in loaded.damage[0]


def test_the_order_is_write_fsync_rename_fsync_of_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the first fsync a crash leaves an empty file, without the last the old one."""
    steps: list[str] = []
    real_fsync, real_replace = os.fsync, os.replace

    def fsync(number: int) -> None:
        target = Path(os.readlink(f"/proc/self/fd/{number}"))
        steps.append("fsync folder" if target == tmp_path else "fsync file")
        if target != tmp_path:
            assert target.stat().st_size > 0
        real_fsync(number)

    def replace(source: Path, target: Path) -> None:
        steps.append("rename")
        real_replace(source, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", replace)
    OffsetFile(tmp_path, "shop").save(snapshot(1))
    assert steps == ["fsync file", "rename", "fsync folder"]


@pytest.mark.parametrize("looked", [True, False])
def test_a_damaged_file_does_not_take_the_place_of_the_whole_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, looked: bool
) -> None:
    """A crash in the middle of the first save after the damage leaves what is whole."""
    file = OffsetFile(tmp_path, "shop")
    file.save(snapshot(1))
    file.save(snapshot(2))
    file.path.write_text("cut sho")
    again = OffsetFile(tmp_path, "shop")
    if looked:
        again.load()

    def crash(source: Path, target: Path) -> None:
        raise OSError("the end")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", crash)
        with pytest.raises(OSError, match="the end"):
            again.save(snapshot(3))
    assert OffsetFile(tmp_path, "shop").load().snapshot == snapshot(1)
    again.save(snapshot(3))
    again.save(snapshot(4))
    again.path.unlink()
    assert again.load().snapshot == snapshot(3)


def test_a_file_of_a_younger_binlogd_is_no_damage(tmp_path: Path) -> None:
    """It is not passed over for an older one, nor written over."""
    file = OffsetFile(tmp_path, "shop")
    file.save(snapshot(1))
    file.save(snapshot(2))
    newer = file.path.read_text().replace('"version": 1', '"version": 2')
    file.path.write_text(newer)
    with pytest.raises(OSError, match=r"version 2, this binlogd reads 1: start the one that"):
        file.load()
    with pytest.raises(OSError, match="version 2"):
        OffsetFile(tmp_path, "shop").save(snapshot(3))
    assert file.path.read_text() == newer


def test_a_full_disk_leaves_the_old_file_whole(tmp_path: Path) -> None:
    """The file is never truncated: a write that fails fails beside it."""
    file = OffsetFile(tmp_path, "shop")
    file.save(snapshot(1))
    script = (
        "import resource, signal, sys\n"
        "from pathlib import Path\n"
        "from tests.daemon.state.test_offset_file import OffsetFile, snapshot\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20, 20))\n"
        "try:\n"
        "    OffsetFile(Path(sys.argv[1]), 'shop').save(snapshot(2))\n"
        "except OSError as error:\n"
        "    sys.exit(3)\n"
    )
    assert resource.RLIMIT_FSIZE is not None
    ended = subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=False)
    assert ended.returncode == 3
    assert file.load().snapshot == snapshot(1)


def test_a_second_process_is_refused_with_the_owners_number(tmp_path: Path) -> None:
    """Two daemons on one state directory would overwrite each other's positions."""
    with lock_state_dir(tmp_path), pytest.raises(StateDirBusy, match=str(os.getpid())):
        lock_state_dir(tmp_path)


def test_the_claim_ends_with_its_owner(tmp_path: Path) -> None:
    """A crash needs no clean-up by hand."""
    lock_state_dir(tmp_path).close()
    with lock_state_dir(tmp_path) as claim:
        assert claim is not None
