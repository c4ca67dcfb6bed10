"""Messages about a target in quarantine: its spill, and its release."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from actors.contract.addresses import Address
from actors.contract.spills import SpillRecord, SpillState
from changes.model import TargetName

OF_SPILL = -1
"""The epoch of messages that come from a spill: they were acknowledged when they went into it."""


@dataclass(frozen=True, slots=True)
class Spilled:
    """All that was handed over is in the spill, durably."""

    target: TargetName
    state: SpillState


@dataclass(frozen=True, slots=True)
class SpillFailed:
    """The spill could not be written or read. ``lasting``: trying again won't help."""

    target: TargetName
    reason: str
    lasting: bool = False


@dataclass(frozen=True, slots=True)
class SpillRead:
    """Messages of a spill; ``position`` is behind them."""

    target: TargetName
    records: Sequence[SpillRecord]
    position: int


@dataclass(frozen=True, slots=True)
class SpillEnded:
    """The spill is gone."""

    target: TargetName


@dataclass(frozen=True, slots=True)
class RetryTarget:
    """Release a target (an ``ask``): the answer is a RetryAnswer, or None where the target is
    another processor's."""

    target: str


@dataclass(frozen=True, slots=True)
class PauseTarget:
    """A person has a target written no more, or again (an ``ask``, answered by every processor)."""

    target: str
    paused: bool


@dataclass(frozen=True, slots=True)
class RetryAnswer:
    """Whether a release has begun, and one line about it."""

    begun: bool
    line: str


@dataclass(frozen=True, slots=True)
class WaitsFor:
    """To ``other``'s processor: in a renaming the write of ``target`` waits for one of ``other``.

    The answer is an InQuarantine, or none: ``target`` asks again at its next attempt.
    """

    target: TargetName
    other: TargetName
    batch_id: str
    reply_to: Address


@dataclass(frozen=True, slots=True)
class InQuarantine:
    """``other`` is in quarantine, so ``target``, whose batch waits for it, can't be written."""

    target: TargetName
    other: TargetName
    batch_id: str
