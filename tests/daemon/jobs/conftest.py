"""Real servers for jobs."""

from __future__ import annotations

from tests.daemon.databases.conftest import servers

__all__ = ["servers"]
