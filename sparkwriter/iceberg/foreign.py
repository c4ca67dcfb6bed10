"""Snapshots that others put on a target: told once each, before a write of ours hides them.

Whoever changes rows of a target by hand makes it differ from its source. A compaction does not:
it writes the same rows to other files.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any

import structlog

from changes.model import TargetName
from sparkwriter.iceberg.java import LakeTable

SAME_ROWS = "replace"
"""The operation of a snapshot that has the rows of the one before."""

log: Any = structlog.get_logger(__name__)


class ForeignSnapshots:
    """What has been told of. Shared by the writers of a sink; any thread."""

    def __init__(self) -> None:
        self._told: set[int] = set()
        self._lock = threading.Lock()

    def tell(self, target: TargetName, table: LakeTable, snapshots: Iterable[int]) -> None:
        """Warn of those that changed rows and were not told of by this process."""
        for snapshot in snapshots:
            operation = table.operation(snapshot)
            if operation == SAME_ROWS or not self._is_news(snapshot):
                continue
            engine = table.summary(snapshot, "engine-name")
            app = table.summary(snapshot, "app-id") or table.summary(snapshot, "spark.app.id")
            log.warning(
                "foreign_snapshot",
                target=str(target),
                snapshot=snapshot,
                operation=operation,
                by=" ".join(filter(None, (engine, app))) or "not told",
                what="others changed rows of the table: it may differ from its source until it is"
                f" read again: binlogd tables rebuild {target}",
            )

    def _is_news(self, snapshot: int) -> bool:
        with self._lock:
            news = snapshot not in self._told
            self._told.add(snapshot)
        return news
