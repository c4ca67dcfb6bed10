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

from actors.staging.folder import OWNER_FILE, StagingFolder, clean_staging, remove_tree

RUN = "run-0123456789ab"
DEAD = "run-deadbeef0000"


def test_what_dead_runs_left_is_removed_at_the_start(tmp_path: Path) -> None:
    """Their changes are read again from Kafka; the JVM's temporary files are in such folders too,
    whatever those hold."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "file").write_bytes(b"not ours")
    for name in (DEAD, f"{DEAD}-jvm"):
        with another_run(tmp_path, name) as run:
            assert list(run.glob("*.parquet"))
        (run / "jvm" / "blockmgr-1").mkdir(parents=True)
        (run / "jvm" / "libzstd.so").write_bytes(b"code")
        (run / "link").symlink_to(elsewhere)
        (run / "jvm" / "link").symlink_to(elsewhere)
    assert clean_staging(tmp_path) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["elsewhere"]
    assert (elsewhere / "file").read_bytes() == b"not ours"


def dead_run(folder: Path) -> None:
    """What a run leaves that was killed."""
    folder.mkdir(parents=True)
    (folder / OWNER_FILE).write_text("1\n")
    (folder / "1.parquet").write_bytes(b"staged")


def everything(folder: Path) -> list[Path]:
    """All that is below a folder."""
    return sorted(folder.rglob("*"))


@pytest.mark.parametrize(
    "name", ["run-", "run-2024-reports", "run-0123456789AB", "run-0123456789ab-x", "run-0123"]
)
def test_a_folder_of_another_name_stays(tmp_path: Path, name: str) -> None:
    """It only looks like a run's: somebody's own results, beside ours."""
    dead_run(tmp_path / name)
    before = everything(tmp_path)
    assert clean_staging(tmp_path) == 0
    assert everything(tmp_path) == before


def test_a_folder_without_an_owners_file_stays(tmp_path: Path) -> None:
    """No run of ours made it: each makes that file before it puts anything there."""
    (tmp_path / RUN / "data").mkdir(parents=True)
    (tmp_path / RUN / "data" / "1.parquet").write_bytes(b"not ours")
    before = everything(tmp_path)
    assert clean_staging(tmp_path) == 0
    assert everything(tmp_path) == before


def test_a_link_to_a_folder_stays_and_so_does_the_folder(tmp_path: Path) -> None:
    """Nobody gets another's folder removed by a link to it."""
    victim, staging = tmp_path / "victim", tmp_path / "staging"
    dead_run(victim)
    staging.mkdir()
    (staging / RUN).symlink_to(victim)
    before = everything(tmp_path)
    assert clean_staging(staging) == 0
    assert everything(tmp_path) == before


def test_a_link_in_the_place_of_the_owners_file(tmp_path: Path) -> None:
    """The lock that counts is the folder's own; a file elsewhere is neither made nor locked."""
    dead_run(tmp_path / RUN)
    (tmp_path / RUN / OWNER_FILE).unlink()
    (tmp_path / RUN / OWNER_FILE).symlink_to(tmp_path / "elsewhere")
    before = everything(tmp_path)
    assert clean_staging(tmp_path) == 0
    (tmp_path / "elsewhere").write_text("not ours")
    assert clean_staging(tmp_path) == 0
    assert everything(tmp_path) == sorted([*before, tmp_path / "elsewhere"])


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")
def test_another_users_folder_stays(tmp_path: Path) -> None:
    """Root's daemon, too, leaves what another user's left: it is that one's to clean."""
    dead_run(tmp_path / RUN)
    os.chown(tmp_path / RUN, 65534, 65534)
    assert clean_staging(tmp_path) == 0
    os.chown(tmp_path / RUN, os.geteuid(), 0)
    os.chown(tmp_path / RUN / OWNER_FILE, 65534, 65534)
    assert clean_staging(tmp_path) == 0
    os.chown(tmp_path / RUN / OWNER_FILE, os.geteuid(), 0)
    assert clean_staging(tmp_path) == 1


@pytest.mark.parametrize("umask", [0o000, 0o022])
def test_nobody_else_reads_what_is_staged(tmp_path: Path, umask: int) -> None:
    """Rows of the source are in it, whatever the daemon's umask is."""
    before = os.umask(umask)
    try:
        folder = StagingFolder(tmp_path / "staging", RUN)
        clean_staging(tmp_path / "another")
    finally:
        os.umask(before)
    owner = folder.path / OWNER_FILE
    made = (tmp_path / "staging", folder.path, owner, tmp_path / "another")
    assert [oct(path.stat().st_mode & 0o777) for path in made] == [
        "0o700", "0o700", "0o600", "0o700",
    ]  # fmt: skip
    folder.close()


def write(folder: StagingFolder) -> Path:
    """A staged file."""
    path = Path(folder.new_path())
    path.write_bytes(b"staged")
    return path


OTHER_RUN = """
import sys
from pathlib import Path
from actors.staging.folder import StagingFolder
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
        cwd=Path(__file__).parents[3],
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
    with another_run(tmp_path, RUN) as run:
        assert clean_staging(tmp_path) == 0
        assert (run / "1.parquet").read_bytes() == b"staged"
        assert int((run / OWNER_FILE).read_text()) != os.getpid()
    assert clean_staging(tmp_path) == 1


def test_our_own_folder_stays(tmp_path: Path) -> None:
    """A second service in one process does not take the first one's files."""
    folder = StagingFolder(tmp_path, RUN)
    staged = write(folder)
    assert clean_staging(tmp_path) == 0
    assert staged.exists()


def test_a_folder_that_is_removed_before_it_is_locked(tmp_path: Path) -> None:
    """A starting run whose folder another took for dead makes it again, and then holds it."""
    run = tmp_path / RUN
    run.mkdir()
    with (run / OWNER_FILE).open("a") as cleaner:
        fcntl.flock(cleaner, fcntl.LOCK_EX)
        made: list[StagingFolder] = []
        starting = threading.Thread(target=lambda: made.append(StagingFolder(tmp_path, RUN)))
        starting.start()
        remove_tree(run)
    starting.join(20)
    assert clean_staging(tmp_path) == 0
    assert write(made[0]).exists()


def test_the_lock_of_a_folder_that_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who waited for a lock and gets it too late does not remove the new folder of that name."""
    run = tmp_path / RUN
    dead_run(run)
    live: list[StagingFolder] = []
    flock = fcntl.flock

    def late(file: object, how: int) -> None:
        if how & fcntl.LOCK_NB and not live:
            remove_tree(run)
            live.append(StagingFolder(tmp_path, RUN))
        flock(file, how)  # type: ignore[arg-type]

    monkeypatch.setattr(fcntl, "flock", late)
    assert clean_staging(tmp_path) == 0
    assert (run / OWNER_FILE).exists()


def _start_and_clean(folder: Path, number: int, gate: threading.Barrier) -> None:
    gate.wait(30)
    clean_staging(folder)
    staging = StagingFolder(folder, f"run-{number:012x}")
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
    folder = StagingFolder(tmp_path, RUN)
    staged = write(folder)
    folder.remove((str(staged), str(staged)))
    folder.close()
    assert list(tmp_path.iterdir()) == []


def test_each_file_has_a_name_of_its_own(tmp_path: Path) -> None:
    """Two processors stage at the same time."""
    folder = StagingFolder(tmp_path, RUN)
    paths = {folder.new_path() for _ in range(5)}
    assert len(paths) == 5
