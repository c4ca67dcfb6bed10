"""Real servers for verification."""

from __future__ import annotations

from tests.daemon.databases.conftest import drivers, servers

__all__ = ["drivers", "servers"]
