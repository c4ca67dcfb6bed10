"""Which labels a target's enumerations had: kept with the target, so that one that went is found.

The source changes stored rows with a label, and sends no row (PostgreSQL's ``RENAME VALUE``).
"""

from __future__ import annotations

import json

from actors.contract.writes import StagedBatch
from changes.column_changes import adds_labels
from sparkwriter.kit.store import Existing


def labels_after(batch: StagedBatch, seen: Existing) -> str:  # type: ignore[type-arg]
    """The labels once the batch is published, as JSON by column; empty: as they were."""
    held = _held(seen)
    if batch.labels.items() <= held.items():
        return ""
    return json.dumps({**held, **batch.labels}, ensure_ascii=False, sort_keys=True)


def lost_labels(batch: StagedBatch, seen: Existing) -> list[str]:  # type: ignore[type-arg]
    """What is to be told of labels that went, but for what the batch itself tells."""
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
