"""Servers for all tests of a process; each test has a database of its own."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from demo.broker import DevBroker
from demo.servers.mariadb import MariaDb
from demo.servers.postgres import Postgres
from tests.databases.base.conftest import folder
from tests.needs import collector_jars

_NUMBERS = itertools.count(1)


@pytest.fixture(scope="session", autouse=True)
def _jars() -> None:
    collector_jars()


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevBroker]:
    with DevBroker(tmp_path_factory.mktemp("broker")) as found:
        yield found


@pytest.fixture(scope="session")
def mariadb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MariaDb]:
    server = MariaDb(tmp_path_factory.mktemp("m"))
    server.start()
    made = ["CREATE USER reader@'%' IDENTIFIED BY 'first'", "GRANT ALL ON *.* TO reader@'%'"]
    assert not server.run(made)
    yield server
    server.program.kill()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    with folder() as where:
        server = Postgres(where / "server")
        server.start()
        yield server
        server.program.kill()


@pytest.fixture
def name() -> str:
    """Of a database, a topic and a collector that no other test has."""
    return f"c{next(_NUMBERS)}"
