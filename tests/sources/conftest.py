"""The broker of the stores' tests."""

from __future__ import annotations

from tests.daemon.conftest import store_broker

__all__ = ["store_broker"]
