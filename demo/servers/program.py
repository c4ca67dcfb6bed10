"""A server that runs as a child: started, killed, ended in good order, and never left behind."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import demo.leash

HOST = "127.0.0.1"
_STOP_WITHIN_S = 30.0
_LOOK_EVERY_S = 0.1


class ServerError(Exception):
    """A server can't be had: one line, with the end of a log."""


class ServerMissing(ServerError):
    """What a server is made of is not on this machine."""

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
        """Start it; it is not ready yet."""
        leash = [sys.executable, "-I", str(demo.leash.__file__), *map(str, command)]
        with self.log.open("ab") as log:
            self._begun = log.tell()
            self._leash = subprocess.Popen(
                leash, stdin=subprocess.PIPE, stdout=log, stderr=subprocess.STDOUT,
                start_new_session=True, env=os.environ | self._environment,
            )  # fmt: skip

    @property
    def runs(self) -> bool:
        """Whether it has been started and has not ended."""
        return self._leash is not None and self._leash.poll() is None

    @property
    def pid(self) -> int:
        """The process, with what it started below it. Raises ServerError where none runs."""
        if self._leash is None:
            raise ServerError(f"{self.name} does not run")
        return self._leash.pid

    def await_ready(self, ready: Callable[[], bool], within_s: float) -> None:
        """Return when ``ready`` says so; raises ServerError where it ends before, or never is."""
        deadline, pause = time.monotonic() + within_s, threading.Event()
        while not ready():
            if not self.runs or time.monotonic() > deadline:
                raise ServerError(f"{self.name} does not start: {self.tail()}")
            pause.wait(_LOOK_EVERY_S)

    def kill(self) -> None:
        """kill -9. Its files stay."""
        if self._leash is None:
            return
        assert self._leash.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._leash.stdin.close()
        self._leash.wait()
        self._leash = None

    def stop(self) -> None:
        """SIGTERM, and SIGKILL where that takes too long; nothing where it is down."""
        if self._leash is None:
            return
        assert self._leash.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it has ended by itself
            self._leash.stdin.write(b"x")
            self._leash.stdin.flush()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._leash.wait(_STOP_WITHIN_S)
        self.kill()

    def told(self) -> str:
        """What it has written since it was started last."""
        with self.log.open("rb") as log:
            log.seek(self._begun)
            return log.read().decode(errors="replace")

    def tail(self, lines: int = 12) -> str:
        """The end of its log."""
        if not self.log.exists():
            return "(no log)"
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])


def free_port() -> int:
    """A port of the loopback interface that nobody listens on."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port
