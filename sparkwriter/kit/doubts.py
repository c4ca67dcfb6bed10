"""The mark of a target whose stored rows may differ, set by the step that brings the reason.

Where the columns change first, in a step of their own, it is that one: whoever comes after a crash
finds the columns as the rows have them, and nothing to tell.
"""

from __future__ import annotations

from typing import Any

import structlog

from actors.contract.writes import StagedBatch
from changes.model import Mode
from offsets.doubts import noted
from sparkwriter.kit.shape import columns_added
from sparkwriter.kit.store import E, TableStore

log: Any = structlog.get_logger(__name__)


def mark_after(store: TableStore[E], seen: E, batch: StagedBatch) -> str | None:
    """The target's mark once the batch is written.

    Without rows there is nothing that could differ, but for what the batch itself brings, or other
    lanes of a target with positions may; and a changelog's rows are what happened.
    """
    adds = store.added_otherwise(seen, batch) + columns_added(batch, seen.shape)
    if not (batch.doubts or adds) or seen.stored.mode is Mode.APPEND:
        return seen.differs
    empty = seen.positions is None and store.is_empty(seen)
    if empty:
        adds = []
    if adds:
        log.warning("rows_may_differ", target=str(batch.target), what="; ".join(adds))
    events = adds + [
        doubt.what
        for doubt in batch.doubts
        if (doubt.amid or not empty)
        if doubt.if_null is None or store.may_hold_null(seen, doubt.if_null)
    ]
    return noted(seen.differs, events)


def mark_of_new(batch: StagedBatch) -> str | None:
    """The mark of a table that is made for the batch, whose rows it gets in a later step."""
    if batch.mode is Mode.APPEND:
        return None
    kept = batch.positions is not None
    return noted(None, [doubt.what for doubt in batch.doubts if doubt.amid or kept])
