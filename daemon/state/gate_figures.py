"""What people see of gates: closed through when, why shut, who is not told."""

from __future__ import annotations

from typing import TypedDict


class Undelivered(TypedDict):
    """``reason``: why a way takes none, for ``seconds``; null: it is its turn."""

    notifications: int
    reason: str | None
    seconds: float | None


class ClosedShown(TypedDict):
    """The last partition that closed in its turn."""

    begin: str
    through: str
    version: int
    closed: str


class GateShown(TypedDict):
    """One gate. ``next``: where the next partition begins and ends; null: nothing is recorded yet.
    ``shut``: by table why the partition that begins with ``shut_from`` was not complete, by the
    last look, ``looked_seconds`` ago; null: nobody has ever looked. ``looking_seconds``: a look has
    been under way for so long; null: none that takes long."""

    gate: str
    configured: bool
    last: ClosedShown | None
    next: list[str] | None
    reopened: list[str]
    shut_from: str | None
    shut: dict[str, str]
    looked_seconds: float | None
    looking_seconds: float | None
    undelivered: dict[str, Undelivered]
    error: str | None
