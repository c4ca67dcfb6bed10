"""Runs child processes that decode and stage for the processors, so that they share no lock.

Decoding is most of the work on a change and holds Python's global lock. In threads of one process
the fetcher would wait for it. Raw messages go to the child through memory that both sides map. A
summary comes back; the rows are in the file by then.
"""

from __future__ import annotations

import errno
import itertools
import os
import socket
import subprocess
import sys
import threading
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING

from actors.contract.effects import LaneMessages, Stage
from actors.contract.messages import Staged, StageFailed
from actors.contract.raw_messages import Messages
from actors.staging.folder import StagingFolder
from changes.model.model import FormatOptions
from changes.model.records import Values

if TYPE_CHECKING:
    pass

CHILD = "actors.staging.child"
"""The module that the process runs."""

_ALLOCATION = {"MALLOC_ARENA_MAX": "1"}
"""One heap: only one thread of it allocates."""

STOP_TIMEOUT_S = 5.0
"""The limit for the process to end after its connection closes. It may be in the middle of a
batch."""


class StageProcessDied(Exception):
    """The process ended by itself: the daemon can't go on, a restart reads its work again."""


Kind = tuple[str, FormatOptions]
"""A pipeline's format by its name, with its options."""


@dataclass(frozen=True, slots=True)
class StageJob:
    """One batch. The values are in the shared memory, one after another; ``sizes`` are theirs.
    ``run``: what is known of the targets is of one run of the pipeline's processor.

    The ``Messages`` of the request come without them: the child puts them in.
    """

    pipeline: str
    kind: Kind
    run: int
    request: Stage
    path: str
    sizes: tuple[array[int], ...]


class StageProcess:
    """One process, for the processors of one number of all pipelines.

    The main thread makes and closes it. Processors use it, one batch at a time.
    """

    def __init__(self, folder: StagingFolder, child: str = CHILD) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._memory = os.memfd_create("binlogd-stage", os.MFD_CLOEXEC)
        ours, theirs = socket.socketpair()
        with theirs:
            fds = (theirs.fileno(), self._memory)
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", child, *map(str, fds)],
                pass_fds=fds,
                env={
                    **_ALLOCATION,
                    **os.environ,
                    "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
                },
            )
        self._pipe = Connection(ours.detach())

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid

    def stage(self, pipeline: str, kind: Kind, run: int, request: Stage) -> Staged | StageFailed:
        """Stage a batch of a pipeline and remove its earlier files. Raises StageProcessDied."""
        path = self._folder.new_path()
        with self._lock:
            try:
                sizes = self._hand_over(request.lanes)
            except OSError as error:
                reason = f"the batch can't be handed to its decoding process: {error}"
                return StageFailed(request.route.name, reason)
            try:
                lean = tuple(
                    replace(lane, messages=_without_values(lane.messages)) for lane in request.lanes
                )
                lean_request = replace(request, lanes=lean)
                self._pipe.send(StageJob(pipeline, kind, run, lean_request, path, sizes))
                answer = self._pipe.recv()
            except (EOFError, ConnectionError) as error:
                status = self._process.wait(STOP_TIMEOUT_S)
                raise StageProcessDied(
                    f"the decoding process {self.pid} ended with status {status}"
                ) from error
        if isinstance(answer, Staged):
            self._folder.remove(request.earlier_files)
            return answer
        if isinstance(answer, StageFailed):
            return answer
        raise StageProcessDied(f"the decoding process {self.pid}: {answer}")

    def close(self) -> None:
        """End the process. Called when the actors have ended."""
        self._pipe.close()
        os.close(self._memory)
        try:
            self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _hand_over(self, lanes: Sequence[LaneMessages]) -> tuple[array[int], ...]:
        """Write the values into the shared memory, and return their sizes. Raises OSError: no
        memory, or a limit on the size of files, which counts for it too."""
        at = 0
        sizes = []
        for values in map(Values.of, (lane.messages.values for lane in lanes)):
            taken = os.pwrite(self._memory, values.whole, at)
            if taken != len(values.whole):
                raise OSError(errno.EFBIG, f"{at + taken} bytes of it were taken, not all")
            at += taken
            sizes.append(values.sizes)
        return tuple(sizes)


def _without_values(messages: Messages) -> Messages:
    return replace(messages, offsets=array("q", messages.offsets), values=())


@dataclass(frozen=True, slots=True)
class PipelineStager:
    """The ``Stager`` of one processor of one pipeline, for one run of it.

    ``run``: whatever a former one knew is forgotten. Routes may be others since, and a table that
    took another's name has columns of its own.
    """

    pipeline: str
    kind: Kind
    run: int
    process: StageProcess
    folder: StagingFolder

    def stage(self, request: Stage) -> Staged | StageFailed:
        """See ``Stager``. On the processor's thread."""
        return self.process.stage(self.pipeline, self.kind, self.run, request)

    def remove(self, paths: tuple[str, ...]) -> None:
        """Remove staged files that are given up."""
        self.folder.remove(paths)


class StageProcesses:
    """All processes of a daemon: one for each processor's number, whatever the pipelines."""

    def __init__(
        self,
        kind: Callable[[str], Kind],
        folder: StagingFolder,
        count: int,
        child: str = CHILD,
    ) -> None:
        self._kind = kind
        self._folder = folder
        self._processes = [StageProcess(folder, child) for _ in range(count)]
        self._runs = itertools.count()

    def of(self, pipeline: str, number: int) -> PipelineStager:
        """The stager of a processor that begins."""
        process, run = self._processes[number], next(self._runs)
        return PipelineStager(pipeline, self._kind(pipeline), run, process, self._folder)

    def remove(self, paths: tuple[str, ...]) -> None:
        """Remove staged files that are written."""
        self._folder.remove(paths)

    @property
    def pids(self) -> tuple[int, ...]:
        """The processes' ids."""
        return tuple(process.pid for process in self._processes)

    def close(self) -> None:
        """End the processes. Called by the main thread when the actors have ended."""
        for process in self._processes:
            process.close()
