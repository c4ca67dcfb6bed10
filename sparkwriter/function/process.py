"""The parent's side of a handler's process: starts it, bounds its time and memory, ends it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from multiprocessing.connection import Connection
from pathlib import Path

from changes.model.errors import SinkUnavailable, TargetRefused
from changes.model.printable import reason_of
from sparkwriter.function.calls import Call, CallDone, Raised, Started, StartHandler

CHILD = "sparkwriter.function.child"

START_WITHIN_S = 60.0
"""The module's imports included."""

LOOK_EVERY_S = 0.2
"""How often the memory of a busy handler is looked at."""

_END_WITHIN_S = 5.0
_PAGE = os.sysconf("SC_PAGE_SIZE")


class HandlerProcess:
    """One process, started with the first call and again after it has ended. One writer's thread.

    All methods raise SinkUnavailable where another try may help (it raised, hung, grew too large,
    ended), and TargetRefused where none will.
    """

    def __init__(self, start: StartHandler, deadline_s: float, memory_bytes: int) -> None:
        self._start = start
        self._deadline_s = deadline_s
        self._memory_bytes = memory_bytes
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe: Connection | None = None
        self._started = Started(False, False)

    @property
    def pid(self) -> int | None:
        """The process's id; None while there is none."""
        return None if self._process is None else self._process.pid

    def started(self) -> Started:
        """What the handler has. Starts it."""
        if self._process is None:
            self._launch()
        return self._started

    def call(self, call: Call) -> CallDone:
        """Have it do something."""
        self.started()
        assert self._pipe is not None
        try:
            self._pipe.send(call)
        except OSError as error:
            raise self._gone() from error
        return self._checked(self._awaited(self._deadline_s))

    def close(self) -> None:
        """End the process, in the middle of a call too."""
        if self._process is None:
            return
        assert self._pipe is not None
        self._pipe.close()
        self._process.kill()
        self._process.wait(_END_WITHIN_S)
        self._process = self._pipe = None

    def _launch(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", CHILD, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
        self._pipe = Connection(ours.detach())
        self._pipe.send(self._start)
        answer = self._awaited(START_WITHIN_S)
        if isinstance(answer, Started):
            self._started = answer
            return
        self.close()
        self._checked(answer)

    def _awaited(self, within_s: float) -> object:
        """The next answer. A process that is late or too large is ended: it may be stuck."""
        assert self._pipe is not None
        deadline = time.monotonic() + within_s
        while not self._pipe.poll(LOOK_EVERY_S):
            if self._has_ended():
                raise self._gone()
            if (held := self._resident()) > self._memory_bytes:
                self.close()
                why = f"its handler held {held >> 20} MB, more than memory_bytes allows"
                raise SinkUnavailable(why)
            if time.monotonic() > deadline:
                self.close()
                raise SinkUnavailable(f"its handler did not return within {within_s:g} s")
        try:
            return self._pipe.recv()
        except (EOFError, OSError) as error:
            raise self._gone() from error
        except Exception as error:
            # Unpickling raises whatever it likes. What the process says next could be anything.
            self.close()
            why = f"its handler's answer can't be read: {type(error).__name__}: {reason_of(error)}"
            raise SinkUnavailable(why) from error

    def _has_ended(self) -> bool:
        """Without a word: what it has forked holds the pipe open, so that no end is read of it."""
        assert self._process is not None
        assert self._pipe is not None
        return self._process.poll() is not None and not self._pipe.poll()

    def _gone(self) -> SinkUnavailable:
        assert self._process is not None
        status = self._process.wait(_END_WITHIN_S)
        self.close()
        return SinkUnavailable(f"its handler's process ended with status {status}")

    def _resident(self) -> int:
        """Bytes that it has in memory; 0 where it has just ended."""
        try:
            return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * _PAGE
        except (OSError, IndexError):
            return 0

    @staticmethod
    def _checked(answer: object) -> CallDone:
        if isinstance(answer, CallDone):
            return answer
        assert isinstance(answer, Raised)
        if answer.lasting:
            raise TargetRefused(answer.text)
        raise SinkUnavailable(f"its handler raised: {answer.text}")
