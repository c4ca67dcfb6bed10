"""A safety rule, and what stands there without it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mutation:
    """A rule, the text that keeps it, what stands there without it, and where to look first."""

    rule: str
    file: str
    text: str
    without: str
    tests: tuple[str, ...]
