"""The mark of a table whose stored rows may differ, set by the commit that brings the reason.

Where the columns change first, in a commit of their own, it is that one: whoever comes after a
crash finds the columns as the rows have them, and nothing to tell.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import structlog

from actors.contract.ports import StagedBatch
from changes.model import Mode, TableName
from offsets.doubts import noted
from sparkwriter.iceberg.column_defaults import added_otherwise
from sparkwriter.iceberg.equality import is_empty
from sparkwriter.iceberg.java import Java
from sparkwriter.iceberg.look import DIFFERS, RENAMING, Seen
from sparkwriter.iceberg.source import source_text

log: Any = structlog.get_logger(__name__)


def mark_after(seen: Seen, batch: StagedBatch) -> str | None:
    """The table's mark once the batch is written.

    Without rows there is nothing that could differ, but for what the batch itself brings, or other
    lanes of a table with positions may; and a changelog's rows are what happened.
    """
    adds = added_otherwise(seen, batch)
    if not (batch.doubts or adds) or seen.stored.mode is Mode.APPEND:
        return seen.differs
    empty = seen.positions is None and is_empty(seen)
    if empty:
        adds = []
    if adds:
        log.warning("rows_may_differ", target=str(batch.target), what="; ".join(adds))
    events = adds + [
        doubt.what
        for doubt in batch.doubts
        if (doubt.amid or not empty)
        if doubt.if_null is None or seen.table.may_hold_null(seen.main, doubt.if_null)
    ]
    return noted(seen.differs, events)


def mark_of_new(batch: StagedBatch) -> str | None:
    """The mark of a table that is made for the batch, whose rows it gets in a later commit."""
    if batch.mode is Mode.APPEND:
        return None
    kept = batch.positions is not None
    return noted(None, [doubt.what for doubt in batch.doubts if doubt.amid or kept])


def set_mark(builder: Java, before: str | None, after: str | None) -> None:
    """Have a metadata builder change the mark."""
    if after is None and before is not None:
        builder.removeProperties({DIFFERS})
    elif after is not None and after != before:
        builder.setProperties({DIFFERS: after})


def also_of(
    seen: Seen, after: str | None, source: TableName | None
) -> Callable[[Java], None] | None:
    """What a write of rows changes in its commit beside the snapshot, None where nothing.

    ``after`` is the mark and ``source`` the table that it is of, both once it is published.
    The marks that came with the table's name are in its snapshots from then on.
    """
    text = source_text(source)
    told = all(seen.table.property(name) == value for name, value in text.items())
    if not seen.renamed and after == seen.differs and told:
        return None

    def change(builder: Java) -> None:
        if seen.renamed:
            builder.removeProperties({RENAMING})
        if not told:
            builder.setProperties(dict(text))
        set_mark(builder, seen.differs, after)

    return change
