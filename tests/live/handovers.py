"""Hand-overs: whoever reads the sources' logs is killed amid transactions, and another goes on."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from random import Random

from tests.live.bench import Bench
from tests.live.collector import Collector
from tests.live.flow import Flow
from tests.live.program import LiveError
from tests.live.sources import FIRST_NUMBER

WITHIN_S = 240.0
"""From a kill to a reader for each seed: a daemon, its session, its worker, on a busy machine."""
_LATEST_S = 3.0
"""Of the moment of a kill, behind the step that it stands behind."""
_SIZES = {1: 30, 2: 20, 7: 20, 40: 10, 3000: 2}
"""Rows of a writer's statement, and how often. A kill meets a large transaction half read; rounds
of hundreds of thousands of rows would be checkpoints more than anything else."""
_PAUSE_S = 1.0


class Writer:
    """Writes numbered transactions into a seed's source, in a thread of its own."""

    def __init__(self, flow: Flow) -> None:
        """Begin."""
        self._source, self._schema = flow.source, flow.generator.schema
        self._rng = Random(f"writer {flow.seed}")
        self._next = FIRST_NUMBER
        self._turn, self._over = threading.Lock(), threading.Event()
        self._problem: BaseException | None = None
        self.written: list[int] = []
        """The last number of each transaction that the source has taken. Read in ``quiet``."""
        self._thread = threading.Thread(target=self._run, name=f"writer {flow.name}")
        self._thread.start()

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Nothing is written meanwhile. Raises what has ended it."""
        with self._turn:
            if self._problem is not None:
                raise self._problem
            yield

    def close(self) -> None:
        """End it; what has ended it before is not raised."""
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            with self._turn:
                self._source.beat(self._schema, 0)
            while not self._over.wait(self._rng.uniform(0, _PAUSE_S)):
                with self._turn:
                    self._write()
        except BaseException as problem:  # raised by who asks for quiet
            self._problem = problem

    def _write(self) -> None:
        numbers, after = [], self._next
        for _ in range(self._rng.choice((1, 1, 2, 3))):
            (size,) = self._rng.choices(list(_SIZES), list(_SIZES.values()))
            numbers.append(range(after, after + size))
            after = numbers[-1].stop
        if error := self._source.write(self._schema, numbers):
            try:
                self._source.beat(self._schema, 0)  # its database was dropped
            except LiveError as still_there:
                raise LiveError(error) from still_there
            return
        self._next = after
        self.written.append(after - 1)


class Handovers:
    """Those of a round. One thread's."""

    def __init__(self, made: Bench, flows: Sequence[Flow]) -> None:
        """Begin to write."""
        self._made = made
        self._rng = Random(f"moments {flows[0].seed}")
        self._before: frozenset[str] | None = None
        self._writers = {flow.seed: Writer(flow) for flow in flows}
        self.done = 0
        """Hand-overs that are over."""

    def close(self) -> None:
        """Write no more."""
        for writer in self._writers.values():
            writer.close()

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """No writer writes meanwhile."""
        with ExitStack() as stack:
            for writer in self._writers.values():
                stack.enter_context(writer.quiet())
            yield

    def written(self, seed: int) -> Sequence[int]:
        """See ``Writer``."""
        return self._writers[seed].written

    def await_moment(self, going: Sequence[Flow]) -> str:
        """Return amid transactions that are read by all, at a moment that nothing tells
        beforehand; a fault, where the hand-over of before does not end."""
        if fault := self.await_over(going):
            return fault
        threading.Event().wait(self._rng.uniform(0, _LATEST_S))
        self._before = self._made.reading()
        return ""

    def await_over(self, going: Sequence[Flow]) -> str:
        """Return when each seed is read by somebody else than before the last kill; a fault, where
        that does not come to be. A seed whose reader has failed by name needs none."""
        if self._before is None:
            return ""
        deadline, pause = time.monotonic() + WITHIN_S, threading.Event()
        while True:
            able = [
                flow
                for flow in going
                if isinstance(flow.reader, Collector)
                and flow.name in flow.reader.hit()
                and not flow.reader.failure(flow.name)
            ]
            found = self._made.reading() - self._before
            if len(found) >= len(able):
                break
            if time.monotonic() > deadline:
                return f"{len(found)} of {len(able)} seeds are read {WITHIN_S:.0f} s after a kill"
            pause.wait(0.3)
        self._before = None
        self.done += bool(able)
        return ""
