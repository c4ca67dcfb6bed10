"""Messages to the supervisor of a pipeline: how far it is, and how it ends."""

from __future__ import annotations

from dataclasses import dataclass

from actors.contract.addresses import Address


@dataclass(frozen=True, slots=True)
class PipelineFailed:
    """A data error: this pipeline must stop, the others go on."""

    pipeline: str
    reason: str


@dataclass(frozen=True, slots=True)
class CaughtUp:
    """Everything below the end offsets seen at the start is applied."""

    pipeline: str


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """A table that is being rebuilt holds all that the old one did: it may take its name."""

    pipeline: str
    target: str


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a pipeline is. ``lag``: messages up to the log's end as it was at the start."""

    pipeline: str
    lag: int
    changes: int


@dataclass(frozen=True, slots=True)
class StopRequested:
    """A signal asks the process to end; the second one asks it to end now."""

    signal: str


@dataclass(frozen=True, slots=True)
class Drained:
    """A processor holds nothing any more."""

    sender: Address


@dataclass(frozen=True, slots=True)
class SourceClosed:
    """The last commit was made and the consumer has left the group."""

    pipeline: str


@dataclass(frozen=True, slots=True)
class ActorCrashed:
    """An actor failed unexpectedly: the process ends, and a restart replays harmlessly."""

    sender: Address
    reason: str
