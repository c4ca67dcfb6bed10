"""The jobs' files."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from daemon.operations.engine.record import JobRequest, State, new_job
from daemon.operations.engine.store import JobStore

JOB = new_job(JobRequest("load", "shop"), 1_000, "load-1")
LATER = new_job(JobRequest("load", "shop"), 2_000, "aaa-2")


def test_jobs_are_kept_oldest_first(tmp_path: Path) -> None:
    """Whatever their names."""
    store = JobStore(tmp_path)
    assert store.load() == ((), ())
    store.save(LATER)
    store.save(JOB)
    running = replace(JOB, state=State.RUNNING)
    store.save(running)
    assert store.load() == ((running, LATER), ())
    store.remove("load-1")
    store.remove("load-1")
    assert store.load().jobs == (LATER,)


def test_only_the_owner_may_read_them(tmp_path: Path) -> None:
    """A job may name rows."""
    before = os.umask(0)
    try:
        JobStore(tmp_path).save(JOB)
    finally:
        os.umask(before)
    file = tmp_path / "jobs" / "load-1.json"
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_damage_is_named_and_left_as_it_is(tmp_path: Path) -> None:
    """The other jobs are read."""
    store = JobStore(tmp_path)
    for job in (JOB, LATER):
        store.save(job)
    file = tmp_path / "jobs" / "load-1.json"
    file.write_text(file.read_text()[:100])
    (tmp_path / "jobs" / "copy.json").write_text((tmp_path / "jobs" / "aaa-2.json").read_text())
    jobs, damage = store.load()
    assert jobs == (LATER,)
    assert [line.split(": ")[0] for line in damage] == [str(file.parent / "copy.json"), str(file)]
    assert "it is the job aaa-2" in damage[0]
    assert len(file.read_text()) == 100


def test_the_order_is_write_fsync_rename_fsync_of_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the first fsync a crash leaves an empty file, without the last the old one."""
    steps: list[str] = []
    real_fsync, real_replace = os.fsync, os.replace

    def fsync(number: int) -> None:
        target = Path(os.readlink(f"/proc/self/fd/{number}"))
        steps.append("fsync folder" if target.is_dir() else "fsync file")
        assert target.stat().st_size > 0
        real_fsync(number)

    def replace_(source: Path, target: Path) -> None:
        steps.append("rename")
        real_replace(source, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", replace_)
    JobStore(tmp_path).save(JOB)
    assert steps == ["fsync file", "rename", "fsync folder"]


def test_a_crash_in_a_save_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whole, and the next save goes through."""
    store = JobStore(tmp_path)
    store.save(JOB)

    def dies(*_: object) -> None:
        raise OSError("no space left")

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", dies)
        with pytest.raises(OSError, match="no space left"):
            store.save(replace(JOB, state=State.DONE))
    assert store.load() == ((JOB,), ())
    store.save(replace(JOB, state=State.DONE))
    assert store.load().jobs[0].state is State.DONE
    assert [path.name for path in (tmp_path / "jobs").iterdir()] == ["load-1.json"]
