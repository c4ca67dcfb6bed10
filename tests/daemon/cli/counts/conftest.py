"""Real servers."""

from __future__ import annotations

from tests.databases.base.conftest import servers

__all__ = ["servers"]
