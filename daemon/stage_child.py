"""The process behind ``stage_process``: it stages what it is given until nobody talks to it."""

from __future__ import annotations

import mmap
import signal
import sys
import traceback
from dataclasses import replace
from itertools import accumulate
from multiprocessing.connection import Connection

from actors.messages import Staged, StageFailed
from changes.formats.auto import make_format
from changes.values import Values
from daemon.collector import calm_collector
from daemon.stage_process import Job, Pipelines
from daemon.stage_work import ParquetTables, StageWork, Tables


def serve(pipe: Connection, memory: int, tables: Tables) -> None:
    """Stage batch after batch. Returns when the other side is gone."""
    try:
        pipelines: Pipelines = pipe.recv()
        works = {
            name: StageWork(make_format(format_, options), tables)
            for name, (format_, options) in pipelines.formats.items()
        }
        while True:
            job: Job = pipe.recv()
            pipe.send(_answer(works[job.pipeline], job, memory))
    except (EOFError, ConnectionError):
        return


def _answer(work: StageWork, job: Job, memory: int) -> Staged | StageFailed | str:
    """What is wrong with our own code is told as well: the daemon stops with it."""
    try:
        return work.stage(_with_values(job, memory).request, job.path)
    except Exception:
        return traceback.format_exc()


def _with_values(job: Job, memory: int) -> Job:
    """The values stay where they are: they are read in place."""
    begins = list(accumulate(map(sum, job.sizes), initial=0))
    if not begins[-1]:
        return job
    view = mmap.mmap(memory, begins[-1], prot=mmap.PROT_READ)
    stretches = tuple(
        replace(stretch, values=Values(view, sizes, begin))
        for stretch, sizes, begin in zip(job.request.stretches, job.sizes, begins, strict=False)
    )
    return replace(job, request=replace(job.request, stretches=stretches))


def main(tables: Tables) -> None:
    """Run with the numbers of the two descriptors that the parent left open."""
    # A signal to the group (Ctrl-C) is the parent's matter: it drains, and then lets us go.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    calm_collector()
    pipe, memory = map(int, sys.argv[1:])
    serve(Connection(pipe), memory, tables)


if __name__ == "__main__":
    main(ParquetTables())
