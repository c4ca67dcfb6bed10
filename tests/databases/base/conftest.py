"""Real servers: each is started when a test first asks for it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.databases.base.servers import SERVERS, Server


class Started(dict[str, Server]):
    """Servers by kind, started on demand. One that is missing ends the test with a line."""

    def __init__(self, stack: ExitStack, folder: Path) -> None:
        super().__init__()
        self._stack, self._folder = stack, folder

    def __missing__(self, kind: str) -> Server:
        self[kind] = self._stack.enter_context(SERVERS[kind](self._folder / kind))
        return self[kind]


@contextmanager
def folder() -> Iterator[Path]:
    """A folder that PostgreSQL, which runs as another user than root, may enter."""
    with tempfile.TemporaryDirectory(prefix="binlogd-servers-") as name:
        Path(name).chmod(0o711)
        yield Path(name)


@pytest.fixture(scope="session")
def servers() -> Iterator[dict[str, Server]]:
    """Servers of the run, by kind."""
    with folder() as where, ExitStack() as stack:
        yield Started(stack, where)


@pytest.fixture
def fresh_server(kind: str) -> Iterator[Server]:
    """A server of the test's ``kind`` that nobody has used."""
    with folder() as where, SERVERS[kind](where / kind) as server:
        yield server
