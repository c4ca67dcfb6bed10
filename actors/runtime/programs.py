"""A program that runs as a child: started, killed, ended in good order, and never left behind."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from actors.runtime import leash

HOST = "127.0.0.1"
STOP_WITHIN_S = 30.0
"""An orderly end of a JVM takes a second or two; after this it is killed."""

LONGEST_LOG = 8 << 20
"""Bytes. A log that is longer is put aside, over the one before."""

_LOWEST_PORT = 10_000
_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_LOOK_EVERY_S = 0.1
_TAIL_BYTES = 64 << 10
_FRAMES = ("at ", "... ")
"""What a line of a Java stack begins with."""


class ProgramError(Exception):
    """A program can't be had: one line, with the end of a log."""


class ProgramMissing(ProgramError):
    """What a program is made of is not on this machine."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"{name} is missing: {why}")
        self.name, self.why = name, why


class Program:
    """One process on a leash: it ends with this one, however that ends. One thread's."""

    def __init__(self, name: str, log: Path, environment: Mapping[str, str] | None = None) -> None:
        self.name = name
        self.log = log
        self._environment = dict(environment or {})
        self._begun = 0
        self._leash: subprocess.Popen[bytes] | None = None

    def launch(self, command: Sequence[str | Path]) -> None:
        """Start it, in a session of its own (Ctrl-C is ours to handle); it is not ready yet."""
        on_leash = [sys.executable, "-I", str(leash.__file__), str(os.getpid()), *map(str, command)]
        self.shorten_log()
        with self.log.open("ab") as log:
            self._begun = log.tell()
            self._leash = subprocess.Popen(
                on_leash, stdin=subprocess.PIPE, stdout=log, stderr=subprocess.STDOUT,
                start_new_session=True, env=os.environ | self._environment,
            )  # fmt: skip

    def shorten_log(self) -> None:
        """Put a log aside that is too long, while its program runs, too: that one goes on with an
        empty file. What it says in between is lost. Raises OSError."""
        if self.log.exists() and self.log.stat().st_size > LONGEST_LOG:
            shutil.copyfile(self.log, self.log.with_name(self.log.name + ".1"))
            os.truncate(self.log, 0)
            self._begun = 0

    @property
    def runs(self) -> bool:
        """Whether it has been started and has not ended."""
        return self._leash is not None and self._leash.poll() is None

    @property
    def code(self) -> int | None:
        """How it has ended by itself: its status, 128 + signal where a signal did; else None."""
        return None if self._leash is None else self._leash.poll()

    @property
    def pid(self) -> int:
        """The process, with what it started below it. Raises ProgramError where none runs."""
        if self._leash is None:
            raise ProgramError(f"{self.name} does not run")
        return self._leash.pid

    def await_ready(self, ready: Callable[[], bool], within_s: float) -> None:
        """Return when ``ready`` says so; raises ProgramError where it ends before, or never is."""
        deadline, pause = time.monotonic() + within_s, threading.Event()
        while not ready():
            if not self.runs or time.monotonic() > deadline:
                raise ProgramError(f"{self.name} does not start: {self.tail()}")
            pause.wait(_LOOK_EVERY_S)

    def wait(self) -> int:
        """Block until it ends by itself; gives its code. Raises ProgramError where none runs."""
        if self._leash is None:
            raise ProgramError(f"{self.name} does not run")
        return self._leash.wait()

    def kill(self) -> None:
        """kill -9. Its files stay."""
        if self._leash is None:
            return
        assert self._leash.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._leash.stdin.close()
        self._leash.wait()
        self._leash = None

    def stop(self, within_s: float = STOP_WITHIN_S) -> None:
        """SIGTERM, and SIGKILL where that takes too long; nothing where it is down."""
        if self._leash is None:
            return
        assert self._leash.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it has ended by itself
            self._leash.stdin.write(b"x")
            self._leash.stdin.flush()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._leash.wait(within_s)
        self.kill()

    def output(self) -> str:
        """What it has written since it was started last."""
        with self.log.open("rb") as log:
            log.seek(self._begun)
            return log.read().decode(errors="replace")

    def tail(self, lines: int = 12) -> str:
        """The end of its log."""
        if not self.log.exists():
            return "(no log)"
        with self.log.open("rb") as log:
            log.seek(max(0, self.log.stat().st_size - _TAIL_BYTES))
            return "\n".join(log.read().decode(errors="replace").splitlines()[-lines:])


def gist(log: str) -> str:
    """The end of a log in one line: without the frames of a stack, the last lines that say much."""
    said = [line.strip() for line in log.splitlines() if line.strip()]
    return "; ".join([line for line in said if not line.startswith(_FRAMES)][-2:])


def free_port(*, other_than: int = 0) -> int:
    """A port of the loopback interface that nobody listens on, below those that the kernel gives to
    connections. ``other_than``: one that is chosen, and not taken yet.

    One of those may be taken while its server is down: by any connection, or by a server that gets
    whatever is free, which the clients of the one that is gone then speak to.
    """
    lowest = 32_768
    with contextlib.suppress(OSError, ValueError, IndexError):
        lowest = int(_RANGE.read_text().split()[0])
    for _ in range(100):
        # Not of the module's own generator, which a test may set to one seed in two processes.
        port = _LOWEST_PORT + secrets.randbelow(max(lowest - _LOWEST_PORT, 1))
        if port != other_than and is_free(port):
            return port
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        found: int = probe.getsockname()[1]
        return found


def is_free(port: int) -> bool:
    """Whether a server may take a port of the loopback interface."""
    with socket.socket() as probe:
        # As Java's servers do: connections of one that just ended don't hold the port.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True
