"""The staging folder on a real disk."""

from __future__ import annotations

import fcntl
import multiprocessing
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from daemon.staging import OWNER_FILE, StagingFolder, clean_staging, remove_tree


def test_what_dead_runs_left_is_removed_at_the_start(tmp_path: Path) -> None:
    """Their changes are read again from Kafka. A run of an older version has no owner's file."""
    with another_run(tmp_path, "run-dead") as run:
        assert list(run.glob("*.parquet"))
    (tmp_path / "run-older").mkdir()
    (tmp_path / "run-older" / "1.parquet").write_bytes(b"staged")
    (tmp_path / "run-older" / "jvm" / "blockmgr-1").mkdir(parents=True)
    (tmp_path / "run-older" / "jvm" / "libzstd.so").write_bytes(b"code")
    (tmp_path / "notes.txt").write_text("not ours")
    assert clean_staging(tmp_path) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def write(folder: StagingFolder) -> Path:
    """A staged file."""
    path = Path(folder.new_path())
    path.write_bytes(b"staged")
    return path


OTHER_RUN = """
import sys
from pathlib import Path
from daemon.staging import StagingFolder
folder = StagingFolder(Path(sys.argv[1]), sys.argv[2])
(Path(sys.argv[1]) / sys.argv[2] / "1.parquet").write_bytes(b"staged")
print("staged", flush=True)
sys.stdin.read()
"""


@contextmanager
def another_run(folder: Path, run_id: str) -> Iterator[Path]:
    """Another process that stages there, killed at the end as by ``kill -9``."""
    child = subprocess.Popen(
        [sys.executable, "-c", OTHER_RUN, str(folder), run_id],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    )
    assert child.stdout is not None
    try:
        assert child.stdout.readline() == b"staged\n"
        yield folder / run_id
    finally:
        child.kill()
        child.communicate()


def test_a_live_owners_folder_stays(tmp_path: Path) -> None:
    """Daemons with state directories of their own may share a staging folder."""
    with another_run(tmp_path, "run-live") as run:
        assert clean_staging(tmp_path) == 0
        assert (run / "1.parquet").read_bytes() == b"staged"
        assert int((run / OWNER_FILE).read_text()) != os.getpid()
    assert clean_staging(tmp_path) == 1


def test_our_own_folder_stays(tmp_path: Path) -> None:
    """A second service in one process does not take the first one's files."""
    folder = StagingFolder(tmp_path, "run-1")
    staged = write(folder)
    assert clean_staging(tmp_path) == 0
    assert staged.exists()


def test_a_folder_that_is_removed_before_it_is_locked(tmp_path: Path) -> None:
    """A starting run whose folder another took for dead makes it again, and then holds it."""
    run = tmp_path / "run-1"
    run.mkdir()
    with (run / OWNER_FILE).open("a") as cleaner:
        fcntl.flock(cleaner, fcntl.LOCK_EX)
        made: list[StagingFolder] = []
        starting = threading.Thread(target=lambda: made.append(StagingFolder(tmp_path, "run-1")))
        starting.start()
        remove_tree(run)
    starting.join(20)
    assert clean_staging(tmp_path) == 0
    assert write(made[0]).exists()


def test_the_lock_of_a_folder_that_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who waited for a lock and gets it too late does not remove the new folder of that name."""
    run = tmp_path / "run-1"
    run.mkdir()
    live: list[StagingFolder] = []
    flock = fcntl.flock

    def late(file: object, how: int) -> None:
        if how & fcntl.LOCK_NB and not live:
            remove_tree(run)
            live.append(StagingFolder(tmp_path, "run-1"))
        flock(file, how)  # type: ignore[arg-type]

    monkeypatch.setattr(fcntl, "flock", late)
    assert clean_staging(tmp_path) == 0
    assert (run / OWNER_FILE).exists()


def _start_and_clean(folder: Path, number: int, gate: threading.Barrier) -> None:
    gate.wait(30)
    clean_staging(folder)
    staging = StagingFolder(folder, f"run-{number}")
    staged = write(staging)
    gate.wait(30)
    clean_staging(folder)
    assert staged.exists()
    gate.wait(30)
    staging.close()


def test_daemons_that_start_at_once(tmp_path: Path) -> None:
    """Each cleans while the others start, and nobody's file is lost."""
    context = multiprocessing.get_context("spawn")
    gate = context.Barrier(4)
    runs = [context.Process(target=_start_and_clean, args=(tmp_path, n, gate)) for n in range(4)]
    for run in runs:
        run.start()
    for run in runs:
        run.join(60)
    assert [run.exitcode for run in runs] == [0] * 4
    assert list(tmp_path.iterdir()) == []


def test_removing_twice_is_fine(tmp_path: Path) -> None:
    """A writer and a processor may both give a file up."""
    folder = StagingFolder(tmp_path, "run-1")
    staged = write(folder)
    folder.remove((str(staged), str(staged)))
    folder.close()
    assert list(tmp_path.iterdir()) == []


def test_each_file_has_a_name_of_its_own(tmp_path: Path) -> None:
    """Two processors stage at the same time."""
    folder = StagingFolder(tmp_path, "run-1")
    paths = {folder.new_path() for _ in range(5)}
    assert len(paths) == 5
