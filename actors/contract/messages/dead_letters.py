"""Messages about dead letters: to their actor, and its answers."""

from __future__ import annotations

from dataclasses import dataclass

from actors.contract.addresses import Address
from changes.model import TargetName
from offsets.position import TopicPartition

DEAD_LETTERS = "(dead letters)"
"""The lane of each partition that holds messages of which no target is known."""


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A record that can't be applied. Without ``target`` the committer hears when it is stored,
    else its processor, ``reply_to``, does."""

    source: TopicPartition
    epoch: int
    offset: int
    value: bytes | None
    reason: str
    target: TargetName | None = None
    reply_to: Address | None = None

    @property
    def place(self) -> str:
        """Where in the log it is."""
        return f"{self.source} offset {self.offset}"


@dataclass(frozen=True, slots=True)
class DeadLetterKept:
    """The store has it, durably."""

    letter: DeadLetter


@dataclass(frozen=True, slots=True)
class DeadLetterNotKept:
    """The store did not take it; it may later. ``log_away``: it was not asked, since the log did
    not give the record."""

    reason: str
    log_away: bool = False


@dataclass(frozen=True, slots=True)
class DeadLettered:
    """The record is stored: it counts as done."""

    source: TopicPartition
    epoch: int
    offset: int
    target: TargetName | None


@dataclass(frozen=True, slots=True)
class DeadLetterRefused:
    """There are too many: the record stays open and its target stops before it."""

    target: TargetName
    reason: str
