"""The mark of a target whose stored rows may differ, set by the step that brings the reason.

Where the columns change first, in a step of their own, it is that one: a writer after a crash
finds the columns as the rows have them, and nothing to tell.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import structlog

from actors.contract.writes import StagedBatch
from changes.formats.engine.column_changes import adds_labels
from changes.model.model import Mode
from offsets.snapshot import names, noted
from sparkwriter.kit.shape import columns_added
from sparkwriter.kit.store import E, Existing, TableStore

# Which labels a target's enumerations had: kept with the target, so that one that went is found.


def labels_after(batch: StagedBatch, seen: Existing) -> str:  # type: ignore[type-arg]
    """The labels once the batch is published, as JSON by column; empty: as they were."""
    held = _held(seen)
    if batch.labels.items() <= held.items():
        return ""
    return json.dumps({**held, **batch.labels}, ensure_ascii=False, sort_keys=True)


def lost_labels(batch: StagedBatch, seen: Existing) -> list[str]:  # type: ignore[type-arg]
    """What to report of labels that are gone, except what the batch itself reports."""
    held = _held(seen)
    lost = [
        f"column {name} from {held[name]} to {words}"
        for name, words in batch.labels.items()
        if held.get(name, words) != words and not adds_labels(held[name], words)
    ]
    told = [doubt.what for doubt in batch.doubts]
    return [f"{batch.target}: {what}" for what in lost if not any(what in each for each in told)]


def _held(seen: Existing) -> dict[str, str]:  # type: ignore[type-arg]
    return dict(json.loads(seen.labels)) if seen.labels else {}


log: Any = structlog.get_logger(__name__)

_HELP = (
    "binlog_row_image = FULL at the source; then have it send the rows again. Of a column that is "
    "the target's own: give it a default there, or list the source's in the route's columns"
)


def mark_after(store: TableStore[E], seen: E, batch: StagedBatch) -> str | None:
    """The target's mark once the batch is written.

    Without rows there is nothing that could differ, but for what the batch itself brings, or other
    lanes of a target with positions may; and a changelog's rows are what happened, but for what
    inserts leave out.
    """
    left = _left_out(store, seen, batch)
    if seen.stored.mode is Mode.APPEND:
        return noted(seen.differs, [*left, *(doubt.what for doubt in batch.doubts)])
    adds = store.added_otherwise(seen, batch) + columns_added(batch, seen.shape)
    adds += lost_labels(batch, seen)
    if not (batch.doubts or adds or left):
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
    return noted(seen.differs, events + left)


def left_out(store: TableStore[E], seen: E, batch: StagedBatch) -> tuple[str, ...]:
    """The target's columns that some of the batch's inserts lack: they took a default that only the
    source knows. Those that the source has dropped, and that the table fills by itself, are none.
    """
    return tuple(_own(store, seen, batch, _lacked(seen, batch)))


def _lacked(seen: E, batch: StagedBatch) -> list[str]:
    if batch.carried is None or batch.path is None:
        return []
    whole = {name.lower() for name in (*batch.carried, *seen.stored.keys)}
    return [c.name for c in seen.stored.schema.columns if c.name.lower() not in whole]


def _own(store: TableStore[E], seen: E, batch: StagedBatch, lacked: Sequence[str]) -> Sequence[str]:
    """Those that the source has, as far as anybody knows. It reads the table's description."""
    if not lacked:
        return lacked
    here = {column.name.lower() for column in batch.schema.columns}
    beside = (store.columns(seen).gone | store.filled(seen)) - here
    return [name for name in lacked if name.lower() not in beside]


def _left_out(store: TableStore[E], seen: E, batch: StagedBatch) -> list[str]:
    """What the mark says of them; each is warned of once."""
    events = {name: _unsaid(batch, name) for name in _lacked(seen, batch)}
    told = [name for name, event in events.items() if not names(seen.differs, event)]
    if not told:
        return list(events.values())
    own = _own(store, seen, batch, list(events))
    for name in told:
        if name in own:
            log.warning("rows_may_differ", target=str(batch.target), what=events[name], help=_HELP)
    return [events[name] for name in own]


def _unsaid(batch: StagedBatch, column: str) -> str:
    # Without a place, so that the mark says it once.
    what = "inserts come without it, and its default at the source is not in the stream"
    return f"{batch.target}: column {column}: {what}"


def mark_of_new(batch: StagedBatch) -> str | None:
    """The mark of a table that is made for the batch, whose rows it gets in a later step."""
    if batch.mode is Mode.APPEND:
        return None
    kept = batch.positions is not None
    return noted(None, [doubt.what for doubt in batch.doubts if doubt.amid or kept])
