"""Real servers for verification."""

from __future__ import annotations

from tests.daemon.databases.conftest import servers

__all__ = ["servers"]
