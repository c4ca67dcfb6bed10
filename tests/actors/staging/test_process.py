"""The decoding process beside the daemon, for real."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from multiprocessing.connection import wait
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from actors.contract.effects import Stage
from actors.contract.messages import Staged, StageFailed
from actors.staging.folder import StagingFolder
from actors.staging.process import Kind, StageProcessDied, StageProcesses
from changes.model.model import FormatOptions, Mode, TargetName
from changes.routes.routing import TargetRoute
from changes.routes.shaping.shape import NO_SHAPE, Shape
from tests.actors.staging.test_work import lane, message

ROUTE = TargetRoute(TargetName("lake", "s", "t"), Mode.UPSERT, None)


def kind(pipeline: str) -> Kind:
    """All pipelines have this format."""
    return "canal-json", FormatOptions()


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[StageProcesses]:
    """One decoding process and a staging folder."""
    folder = StagingFolder(tmp_path, "run-1")
    made = StageProcesses(kind, folder, 1)
    yield made
    made.close()
    folder.close()


def test_what_goes_over_comes_out_whole(processes: StageProcesses) -> None:
    """Messages of different sizes, over two stretches."""
    count = 3000
    values = [message("INSERT", key, "x" * (key % 700)) for key in range(count)]
    lanes = (lane(*values[:2000]), lane(*values[2000:], start=2000))
    staged = processes.of("p", 0).stage(Stage(ROUTE, (), lanes))
    assert isinstance(staged, Staged)
    assert staged.path is not None
    rows = pq.read_table(staged.path).sort_by("id").to_pylist()
    assert [(row["id"], len(row["v"])) for row in rows] == [(k, k % 700) for k in range(count)]


def test_a_small_batch_after_a_large_one_sees_nothing_of_it(processes: StageProcesses) -> None:
    """The shared memory is used again."""
    stager = processes.of("p", 0)
    stager.stage(Stage(ROUTE, (), (lane(*[message("INSERT", 1, "y" * 500)] * 50),)))
    staged = stager.stage(Stage(ROUTE, (), (lane(message("INSERT", 2, "z")),)))
    assert isinstance(staged, Staged)
    assert staged.path is not None
    assert pq.read_table(staged.path)["v"].to_pylist() == ["z"]


def test_what_is_known_of_the_columns_outlives_the_memory_it_was_read_in(
    processes: StageProcesses,
) -> None:
    """Each batch is written over the one before, at other places."""
    stager = processes.of("p", 0)
    for size in (5, 50, 1, 20):
        values = [message("INSERT", key, "y" * size) for key in range(100)]
        staged = stager.stage(Stage(ROUTE, (), (lane(*values),)))
        assert isinstance(staged, Staged)
        assert staged.path is not None
        assert set(pq.read_table(staged.path)["v"].to_pylist()) == {"y" * size}


def test_a_batch_that_finds_no_room_fails_like_a_full_disk(processes: StageProcesses) -> None:
    """It is tried again when there is: a limit on files' sizes counts for shared memory, too."""
    stager = processes.of("p", 0)
    request = Stage(ROUTE, (), (lane(message("INSERT", 1, "y" * 500)),))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64, before[1]))
    try:
        failed = stager.stage(request)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert isinstance(failed, StageFailed)
    assert "64 bytes of it were taken, not all" in failed.reason
    assert isinstance(stager.stage(request), Staged)


@pytest.mark.parametrize(("wanted", "has"), [(None, "1"), ("4", "4")])
def test_a_process_has_one_heap_unless_the_operator_wants_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wanted: str | None, has: str
) -> None:
    """Each would keep what a batch took."""
    monkeypatch.delenv("MALLOC_ARENA_MAX", raising=False)
    if wanted is not None:
        monkeypatch.setenv("MALLOC_ARENA_MAX", wanted)
    folder = StagingFolder(tmp_path, "run-1")
    made = StageProcesses(kind, folder, 1)
    try:
        made.of("p", 0).stage(Stage(ROUTE, (), (lane(message("INSERT", 1, "a")),)))  # it is up
        given = Path(f"/proc/{made.pids[0]}/environ").read_bytes().split(b"\0")
    finally:
        made.close()
        folder.close()
    assert f"MALLOC_ARENA_MAX={has}".encode() in given


def test_the_columns_of_a_target_are_remembered(processes: StageProcesses) -> None:
    """Pieces and batches of one target are one process's work: a later one knows its columns."""
    stager = processes.of("p", 0)
    first = stager.stage(Stage(ROUTE, (), (lane(message("INSERT", 1, "a")),)))
    assert isinstance(first, Staged)
    assert first.path is not None
    whole = stager.stage(Stage(ROUTE, (first.path,), ()))
    assert isinstance(whole, Staged)
    assert whole.rows == 1
    assert not Path(first.path).exists()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (Shape(drop=("v",)), NO_SHAPE),
        (NO_SHAPE, Shape(masks=(("v", "redact"),))),
        (NO_SHAPE, Shape(rename=(("v", "w"),))),
    ],
    ids=["a column more", "a mask", "a name"],
)
def test_a_pipeline_that_starts_again_decodes_by_its_route_of_now(
    before: Shape, after: Shape, processes: StageProcesses
) -> None:
    """A reload, or a table that took another's name: nothing is left of what was known before. A
    column would be missing, or a value be shown without its mask."""
    rows = Stage(replace(ROUTE, shape=before), (), (lane(message("INSERT", 1, "a")),))
    assert isinstance(processes.of("p", 0).stage(rows), Staged)
    again = Stage(replace(ROUTE, shape=after), (), (lane(message("INSERT", 2, "b")),))
    staged = processes.of("p", 0).stage(again)
    assert isinstance(staged, Staged)
    assert staged.path is not None
    table = pq.read_table(staged.path)
    shown = {"v": "***"} if after.masks else {"w": "b"} if after.rename else {"v": "b"}
    assert table.select(["id", *shown]).to_pylist() == [{"id": 2, **shown}]


def test_columns_of_a_former_run_are_forgotten(processes: StageProcesses) -> None:
    """Another table may have the name by then."""
    old = message("INSERT", 1, "a")
    wide = old.replace(b'"v"', b'"gone"')
    assert wide != old
    processes.of("p", 0).stage(Stage(ROUTE, (), (lane(wide),)))
    staged = processes.of("p", 0).stage(Stage(ROUTE, (), (lane(old),)))
    assert isinstance(staged, Staged)
    assert staged.schema is not None
    assert [column.name for column in staged.schema.columns] == ["id", "v"]


def test_bad_records_leave_no_files_open(processes: StageProcesses) -> None:
    """What an error refers to lives until the collector's next round, which is far off."""
    stager, files = processes.of("p", 0), Path(f"/proc/{processes.pids[0]}/fd")
    bad = lane(*[message("INSERT", 1, "a")] * 3, b"no JSON")
    after = []
    for _ in range(30):
        stager.stage(Stage(ROUTE, (), (bad,)))
        after.append(len(list(files.iterdir())))
    assert set(after) == {after[0]}


def test_a_process_that_is_killed_is_an_error_with_its_status(processes: StageProcesses) -> None:
    """The actor fails with it, and the daemon ends to be started again."""
    (pid,) = processes.pids
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(StageProcessDied, match=f"process {pid} ended with status -9"):
        processes.of("p", 0).stage(Stage(ROUTE, (), (lane(message("INSERT", 1, "a")),)))


def test_our_own_error_over_there_is_told_with_its_trace(processes: StageProcesses) -> None:
    """It is no bad message: the daemon stops."""
    route = TargetRoute(ROUTE.name, Mode.UPSERT, 1)  # type: ignore[arg-type]
    with pytest.raises(StageProcessDied, match="Traceback"):
        processes.of("p", 0).stage(Stage(route, (), (lane(message("INSERT", 1, "a")),)))


def test_signals_to_the_group_leave_it_at_work(processes: StageProcesses) -> None:
    """Ctrl-C reaches every process of the terminal: the daemon still drains through this one."""
    stager = processes.of("p", 0)
    stager.stage(Stage(ROUTE, (), (lane(message("INSERT", 1, "a")),)))  # it is up
    for number in (signal.SIGINT, signal.SIGTERM):
        os.kill(processes.pids[0], number)
    assert isinstance(stager.stage(Stage(ROUTE, (), (lane(message("INSERT", 2, "b")),))), Staged)


DAEMON = """
import os, sys
from pathlib import Path
from actors.staging.folder import StagingFolder
from actors.staging.process import StageProcesses
made = StageProcesses(dict.__getitem__, StagingFolder(Path(sys.argv[1]), "run-1"), 2)
print(*made.pids, flush=True)
sys.stdin.read()
os._exit(1)
"""


def test_it_ends_with_the_daemon(tmp_path: Path) -> None:
    """However that ends: the other end of the pipe is closed then."""
    daemon = subprocess.Popen(
        [sys.executable, "-c", DAEMON, str(tmp_path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )  # fmt: skip
    assert daemon.stdout is not None
    pids = [int(pid) for pid in daemon.stdout.readline().split()]
    ends = [os.pidfd_open(pid) for pid in pids]
    daemon.communicate("", timeout=30)
    for end in ends:
        assert wait([end], 30) == [end]
        os.close(end)
    assert len(pids) == 2
