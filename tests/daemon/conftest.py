"""Real brokers: one that stays up, one that tests take away."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from demo.broker import DevBroker


@pytest.fixture(scope="session")
def store_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevBroker]:
    """One real Kafka for the stores' tests."""
    with DevBroker(tmp_path_factory.mktemp("store-broker")) as started:
        yield started


@pytest.fixture(scope="session")
def fragile_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevBroker]:
    """One that a test may kill, if it starts it again."""
    with DevBroker(tmp_path_factory.mktemp("fragile-broker")) as started:
        yield started
