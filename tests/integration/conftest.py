"""The real broker (one for the run), the real Spark (the session's), the daemon in this process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from demo.broker import DevBroker
from tests.integration.rig import Rig


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything in this folder needs a JVM."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker("integration")


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevBroker]:
    """One real Kafka for the whole run."""
    with DevBroker(tmp_path_factory.mktemp("broker")) as started:
        yield started


@pytest.fixture
def write() -> str:
    """How the daemon writes its targets; a file of tests may have it both ways."""
    return "merge"


@pytest.fixture
def rig(
    broker: DevBroker,
    lake_conf: dict[str, str],
    tmp_path: Path,
    request: pytest.FixtureRequest,
    write: str,
) -> Rig:
    """A topic, a configuration and the daemon for one test, with names that nobody else has."""
    return Rig(broker, lambda: request.getfixturevalue("spark"), lake_conf, tmp_path, write)
