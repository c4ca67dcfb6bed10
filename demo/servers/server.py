"""What every test server is: a child that is up when it has answered a real request."""

from __future__ import annotations

import abc
import json
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from http.client import HTTPException
from pathlib import Path
from typing import Any, Self

from actors.runtime.programs import HOST, Program, free_port

START_WITHIN_S = 120.0
"""The slowest, Hive's metastore, takes 8 s on a free machine; three JVMs beside it, 60."""
_ANSWER_WITHIN_S = 5.0


class Server(abc.ABC):
    """One server on loopback, its files in one folder. It ends with this process. One thread's.

    Its port stays the same when it is started again, and so do its data.
    """

    name: str
    environment: Mapping[str, str] = {}

    def __init__(self, folder: Path, port: int = 0) -> None:
        """Nothing runs yet. Port 0: any free one."""
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.port = port or free_port()
        self._program: Program | None = None

    @property
    def program(self) -> Program:
        """The process, whether it runs or not."""
        if self._program is None:
            self._program = Program(self.name, self.folder / "server.log", self.environment)
        return self._program

    @property
    def address(self) -> str:
        """``host:port``."""
        return f"{HOST}:{self.port}"

    @abc.abstractmethod
    def command(self) -> Sequence[str | Path]:
        """What runs it."""

    @abc.abstractmethod
    def answers(self) -> bool:
        """Whether it answers a request of the kind that tests make."""

    def start(self) -> Self:
        """Start it, with the data there are; it is ready. Raises ProgramError."""
        self.program.launch(self.command())
        self.program.await_ready(self.answers, START_WITHIN_S)
        return self

    def kill(self) -> None:
        """kill -9. Its data stay."""
        self.program.kill()

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.kill()
            raise

    def __exit__(self, *exc: object) -> None:
        self.kill()


def ask(url: str, method: str = "GET") -> bytes | None:
    """Give the answer to a request; None where there is none, or an error."""
    request = urllib.request.Request(url, method=method)
    try:
        with urllib.request.urlopen(request, timeout=_ANSWER_WITHIN_S) as answer:
            found: bytes = answer.read()
            return found
    except (OSError, HTTPException, urllib.error.URLError):
        return None


def ask_json(url: str) -> Any:
    """Give the document at an address; an empty one where there is none."""
    return json.loads(ask(url) or b"{}")


def small_java(java: Path, *options: str) -> list[str | Path]:
    """Give the begin of a command line of a JVM that is to start soon and stay small."""
    return [java, "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx512m", *options]
