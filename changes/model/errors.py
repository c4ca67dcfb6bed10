"""Ports: what the actors need from outside, as Protocols, with the thread that may call each."""

from __future__ import annotations

from changes.model.model import TargetName


class SinkUnavailable(Exception):
    """The sink can't take the write now; the same batch may be offered again later."""


class LostRace(SinkUnavailable):
    """Another writer published first. The sink is well: the same batch may be offered at once."""


class SinkAway(SinkUnavailable):
    """No connection can be made, or the server takes no writes: none of the sink's targets can be
    written."""


class WaitsForName(SinkUnavailable):
    """The sink is well: what ``other`` has still to write comes first, in a renaming."""

    def __init__(self, reason: str, other: TargetName) -> None:
        super().__init__(reason)
        self.other = other


class WaitsForRows(SinkUnavailable):
    """The sink is well: rows of another table come or go first, for a foreign key. The stream waits
    for these on purpose; a repair that writes some rows beside it can't."""


class TargetRefused(Exception):
    """The target can't hold what the source has (a type that can't widen, another key)."""
