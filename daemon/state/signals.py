"""How far the signals' topic was read: a file beside the jobs'."""

from __future__ import annotations

from pathlib import Path

import msgspec


class SignalsPlace(msgspec.Struct, forbid_unknown_fields=True):
    """What is read next of each partition."""

    topic: str
    topic_id: str
    offsets: dict[int, int]


def place_file(state_dir: Path) -> Path:
    """Where it is."""
    return state_dir / "jobs" / "signals.offsets"


def stored_place(state_dir: Path) -> SignalsPlace | None:
    """Where the reader of a state directory is; None: nowhere yet. Raises OSError, DecodeError."""
    try:
        return msgspec.json.decode(place_file(state_dir).read_bytes(), type=SignalsPlace)
    except FileNotFoundError:
        return None
