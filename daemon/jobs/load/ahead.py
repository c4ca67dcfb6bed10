"""One read that goes on while its job does something else."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from daemon.databases.port import KeyRange
from daemon.jobs.load.ports import Chunk


@dataclass(frozen=True, slots=True)
class Asked:
    """What is read: a group of ranges, for one attempt of a load. What one attempt has read says
    nothing to another one, which must read later."""

    attempt: str
    parts: tuple[KeyRange, ...]


class Ahead:
    """At most one read, on a thread of its own. Called by one thread."""

    def __init__(self, remove: Callable[[Sequence[Chunk]], None]) -> None:
        """``remove``: of chunks that nobody takes."""
        self._remove = remove
        self._found: tuple[Asked, Future[Sequence[Chunk]]] | None = None

    def begin(self, asked: Asked, read: Callable[[], Sequence[Chunk]]) -> None:
        """Read it meanwhile. Nothing may be under way."""
        assert self._found is None
        future: Future[Sequence[Chunk]] = Future()
        self._found = asked, future
        # No pool: its threads would have to end before the daemon does.
        thread = threading.Thread(target=_run, args=(read, future), daemon=True, name="load-ahead")
        thread.start()

    def take(self, asked: Asked) -> Sequence[Chunk] | None:
        """The chunks of this read, once they are there, or what it raised; None where something
        else was read, or nothing."""
        if self._found is None:
            return None
        (found, future), self._found = self._found, None
        if found == asked:
            return future.result()
        self._drop(future)
        return None

    def close(self) -> None:
        """Wait for what is under way, and remove it."""
        if self._found is not None:
            (_, future), self._found = self._found, None
            self._drop(future)

    def _drop(self, future: Future[Sequence[Chunk]]) -> None:
        # A failure of what nobody wants any more is no news.
        if future.exception() is None:
            self._remove(future.result())


def _run(read: Callable[[], Sequence[Chunk]], future: Future[Sequence[Chunk]]) -> None:
    try:
        future.set_result(read())
    except BaseException as error:  # raised where the chunks are taken
        future.set_exception(error)
