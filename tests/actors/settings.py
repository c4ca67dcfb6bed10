"""Settings of a processor for tests, which have no configuration."""

from __future__ import annotations

from typing import Any

from actors.runtime.lending import Fixed
from actors.target.settings import ProcessorSettings
from changes.model.model import DdlPolicy


def settings_of(**changes: Any) -> ProcessorSettings:
    """Room for everything, one processor, no quarantine, no dead letters; but for ``changes``."""
    roomy: dict[str, Any] = {
        "batch_messages": 50_000,
        "batch_bytes": 16 << 20,
        "batch_age_s": 1.0,
        "buffer_bytes": 32 << 20,
        "memory_bytes": 128 << 20,
        "staged_bytes": 4 << 30,
        "writers": 64,
        "dead_letters": False,
        "quarantine": False,
        "quarantine_bytes": 1 << 30,
        "quarantine_full_stops": False,
        "away_after_s": None,
        "away_spill_bytes": 8 << 30,
        "paused": frozenset(),
        "loads": {},
        "load_spill_bytes": 8 << 30,
        "processors": 1,
        "group": "",
        "ddl": DdlPolicy(),
    }
    given = {**roomy, **changes}
    bounds = {key: Fixed(given.pop(f"{key}_bytes")) for key in ("memory", "staged")}
    return ProcessorSettings(**{**bounds, **given})
