"""The servers themselves: up when they answer, gone when killed, never left behind."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from actors.runtime.java import CHECKOUT
from actors.runtime.programs import HOST
from demo.servers.rest import RestCatalog
from demo.servers.s3 import ObjectStore
from demo.servers.server import Server
from tests.lake.servers.hdfs import Hdfs
from tests.lake.servers.hive import Metastore

pytestmark = [pytest.mark.integration, pytest.mark.long]

SERVERS: dict[str, Callable[[Path], Server]] = {
    "rest": lambda folder: RestCatalog(folder, str(folder / "warehouse"), {}),
    "moto": ObjectStore,
    "hdfs": Hdfs,
    "metastore": lambda folder: Metastore(folder, str(folder / "warehouse"), {}),
}


@pytest.mark.parametrize("name", SERVERS)
def test_a_killed_server_comes_back_where_it_was(name: str, tmp_path: Path) -> None:
    """Its port is the same, so that clients find it again."""
    with SERVERS[name](tmp_path) as server:
        port = server.port
        server.kill()
        assert not server.answers()
        server.start()
        assert (server.answers(), server.port) == (True, port)


def test_a_server_ends_with_whoever_started_it(tmp_path: Path) -> None:
    """Also where that is killed."""
    script = (
        "import pathlib, sys, threading\n"
        "from demo.servers.s3 import ObjectStore\n"
        "server = ObjectStore(pathlib.Path(sys.argv[1])).start()\n"
        "print(server.port, flush=True)\n"
        "threading.Event().wait()\n"
    )
    starter = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)],
        cwd=CHECKOUT,
        env=os.environ | {"PYTHONPATH": str(CHECKOUT)},
        stdout=subprocess.PIPE,
        text=True,
    )
    with starter:
        assert starter.stdout is not None
        port = int(starter.stdout.readline())
        assert listens(port)
        starter.kill()
    deadline, pause = time.monotonic() + 30, threading.Event()
    while listens(port):
        assert time.monotonic() < deadline
        pause.wait(0.1)


def listens(port: int) -> bool:
    """Whether somebody takes connections there."""
    with socket.socket() as probe:
        return probe.connect_ex((HOST, port)) == 0
