"""``kill -9`` of an executor in a write: Spark does its tasks again, and the write lands once."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.lake.test_cluster import Far, by_job, cheap_jobs, far  # noqa: F401
from tests.sparkwriter.conftest import way_of

pytestmark = [pytest.mark.lake, pytest.mark.integration]

ROWS = 200_000
"""So many that each task takes a second at least."""

BETWEEN_LOOKS_S = 0.02

ATTEMPTS = 5
"""A task may have ended just before its executor was killed: then another write is tried."""


def test_an_executor_is_killed_in_a_write(far: Far, by_job: None, cheap_jobs: None) -> None:  # noqa: F811
    """Rows and marks are those of the batch, and the writer goes on."""
    for attempt in range(ATTEMPTS):
        through = attempt + 2
        batch = far.batch(through, *(("U", key, "x", through) for key in range(ROWS)))
        failed = failed_tasks(far)
        with ThreadPoolExecutor(1) as pool:
            write = pool.submit(way_of, far.writer, batch)
            while (busy := busy_executor(far)) is None and not write.done():
                time.sleep(BETWEEN_LOOKS_S)
            if busy is not None:
                os.kill(busy, signal.SIGKILL)
            assert write.result() == "jobs"
        assert far.rows("count(*), min(n), max(n)") == [(ROWS, through, through)]
        assert set(far.writer.open(far.target).hwms.values()) == {through}
        if failed_tasks(far) > failed:
            return
    pytest.fail(f"no task was killed in {ATTEMPTS} writes")


def busy_executor(far: Far) -> int | None:  # noqa: F811
    """The process of an executor that is at a task now."""
    for one in executors(far):
        if one.isActive() and one.activeTasks() and str(one.id()) != "driver":
            return process_of(str(one.id()), far.spark.sparkContext.applicationId)
    return None


def failed_tasks(far: Far) -> int:  # noqa: F811
    """Of all executors, the dead ones too."""
    return sum(int(one.failedTasks()) for one in executors(far))


def executors(far: Far) -> Iterator[Any]:  # noqa: F811
    """As Spark's own status has them."""
    found = far.spark.sparkContext._jsc.sc().statusStore().executorList(False)
    return (found.apply(number) for number in range(found.size()))


def process_of(executor: str, application: str) -> int | None:
    """Its process, found by its command line: one that this test's cluster started."""
    wanted = {f"--executor-id {executor}", f"--app-id {application}"}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue  # it has ended meanwhile
        if "CoarseGrainedExecutorBackend" in line and all(f"{one} " in line for one in wanted):
            return int(folder.name)
    return None
