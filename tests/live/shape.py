"""How long a run's seeds are, and what comes beside their statements. Values, and pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shape:
    """Of all seeds of a run."""

    steps: int
    every: int
    """A checkpoint after each so many of them."""
    beside: int
    """So many seeds are under way at once."""
    kills: bool
    """Whether programs are killed amid it."""
    handovers: bool = False
    """Whether those who read the logs are killed again and again, and nobody else is."""
    without: frozenset[str] = frozenset()
    """Kinds of steps that are left out."""
    operator: bool = False
    """Whether somebody gives commands beside the statements."""
    own: bool = False
    """Whether some targets in databases are tables that somebody else made."""
    partitions: int = 1
    """Of each seed's topic, or topics."""
    wires: tuple[str, ...] = ("json",)
    """How records are written; seeds take turns."""
