"""The child process behind ``process.py``: stages batches until its parent closes the
connection."""

from __future__ import annotations

import mmap
import signal
import sys
import traceback
from dataclasses import replace
from itertools import accumulate
from multiprocessing.connection import Connection

from actors.contract.messages import Staged, StageFailed
from actors.staging.collector import calm_collector
from actors.staging.process import Kind, StageJob
from actors.staging.staged_tables import ParquetTables, StagedStorage
from actors.staging.work import StageWork
from changes.formats import make_format
from changes.model.records import Values


class SharedValues:
    """The messages of one batch after another, read in place without a copy.

    The memory is mapped again only when it has grown. With a mapping for each batch, each bad
    record would hold a descriptor: an error's references live until the collector's next round.
    """

    def __init__(self, memory: int) -> None:
        """``memory`` is the descriptor of a file that never shrinks."""
        self._memory = memory
        self._view: mmap.mmap | None = None

    def put_into(self, job: StageJob) -> StageJob:
        """The job with its messages."""
        begins = list(accumulate(map(sum, job.sizes), initial=0))
        if not begins[-1]:
            return job
        if self._view is None or len(self._view) < begins[-1]:
            self._view = mmap.mmap(self._memory, 0, prot=mmap.PROT_READ)
        view = self._view
        lanes = tuple(
            replace(lane, messages=replace(lane.messages, values=Values(view, sizes, begin)))
            for lane, sizes, begin in zip(job.request.lanes, job.sizes, begins, strict=False)
        )
        return replace(job, request=replace(job.request, lanes=lanes))

    def release(self) -> None:
        """The batch is done: its pages no longer count as this process's memory.

        The file keeps its content, so the next batch may be there already.
        """
        if self._view is not None:
            self._view.madvise(mmap.MADV_DONTNEED)


def serve(pipe: Connection, memory: int, tables: StagedStorage) -> None:
    """Stage batch after batch. Returns when the parent is gone."""
    try:
        works: dict[str, tuple[Kind, int, StageWork]] = {}
        values = SharedValues(memory)
        while True:
            job: StageJob = pipe.recv()
            if works.get(job.pipeline, ())[:2] != (job.kind, job.run):
                work = StageWork(make_format(*job.kind), tables)
                works[job.pipeline] = job.kind, job.run, work
            pipe.send(_answer(works[job.pipeline][2], job, values))
            values.release()
    except (EOFError, ConnectionError):
        return


def _answer(work: StageWork, job: StageJob, values: SharedValues) -> Staged | StageFailed | str:
    """An error in our own code goes to the parent too, which stops the daemon."""
    try:
        return work.stage(values.put_into(job).request, job.path)
    except Exception:
        return traceback.format_exc()


def main(tables: StagedStorage) -> None:
    """Run with the numbers of the two descriptors that the parent left open."""
    # The parent handles a signal to the group (Ctrl-C): it drains, and then ends this process.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    calm_collector()
    pipe, memory = map(int, sys.argv[1:])
    serve(Connection(pipe), memory, tables)


if __name__ == "__main__":
    main(ParquetTables())
