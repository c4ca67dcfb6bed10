"""What a processor is made with: its limits, and what an earlier run left of its targets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from actors.contract.raw_messages import SpillState
from changes.model.model import DdlPolicy
from changes.routes.routing import TargetRoute
from offsets.rebuild import Load


@dataclass(frozen=True, slots=True)
class ProcessorSettings:
    """When a batch is due, and how much may be held.

    ``memory_bytes`` bounds the raw messages of all this processor's buffers; at that bound the
    largest is staged. ``staged_bytes`` bounds its staged files; beyond it data is left waiting.
    """

    batch_messages: int = 50_000
    batch_bytes: int = 16 << 20
    batch_age_s: float = 1.0
    buffer_bytes: int = 32 << 20
    memory_bytes: int = 128 << 20
    staged_bytes: int = 4 << 30
    writers: int = 64
    """Writes in flight at most. No more than there are writers: a batch that would only queue
    grows instead, so under load there are fewer and larger writes. No fewer: a writer that is
    free is never left waiting by targets that hang."""
    dead_letters: bool = False
    """Records that can't be decoded are stored and passed over, instead of stopping a target."""
    quarantine: bool = False
    """A target that its sink refuses is quarantined, instead of stopping the pipeline."""
    quarantine_bytes: int = 1 << 30
    quarantine_full_stops: bool = False
    away_after_s: float | None = None
    """A target whose sink has not answered for so long is written into its spill, so that targets
    in other sinks go on. None: it waits, as does all that is read once memory is full."""
    away_spill_bytes: int = 8 << 30
    reread_offsets: int = 20_000
    """How much of the log is read again at once for a spill."""
    paused: frozenset[str] = frozenset()
    """The targets among these names are not written: a person paused them in an earlier run."""
    loads: Mapping[str, Load] = field(default_factory=dict)
    """By the name of the table that is filled."""
    load_spill_bytes: int = 8 << 30
    processors: int = 1
    """How many the pipeline has: a target's number among them follows from its name."""
    retry_base_s: float = 0.5
    retry_max_s: float = 30.0
    group: str = ""
    """See ``StagedBatch.group``."""
    ddl: DdlPolicy = field(default_factory=DdlPolicy)


@dataclass(frozen=True, slots=True)
class OpenSpill:
    """A target with a spill since an earlier run, and what that holds."""

    route: TargetRoute
    reason: str
    state: SpillState
    away: bool = False
    """Its sink was away: it is no quarantine."""


@dataclass(frozen=True, slots=True)
class QuarantineSettings:
    """``bytes_`` bounds one target's spill; at the bound its messages wait (and with them, once
    memory is full, everything else), or with ``stop`` the pipeline stops. ``load_bytes`` bounds
    that of a target which is being loaded; at the bound the load is given up. ``away_bytes`` bounds
    that of a target whose sink is away; at the bound its messages wait. ``reread_offsets``: how
    much of the log is read again at once."""

    bytes_: int = 1 << 30
    load_bytes: int = 8 << 30
    away_bytes: int = 8 << 30
    reread_offsets: int = 20_000
    stop: bool = False
    page_bytes: int = 16 << 20
    age_s: float = 1.0
    retry_base_s: float = 0.5
    retry_max_s: float = 30.0

    @classmethod
    def of(cls, settings: ProcessorSettings) -> QuarantineSettings:
        """Those of a processor."""
        return cls(
            bytes_=settings.quarantine_bytes,
            load_bytes=settings.load_spill_bytes,
            away_bytes=settings.away_spill_bytes,
            reread_offsets=settings.reread_offsets,
            stop=settings.quarantine_full_stops,
            page_bytes=settings.batch_bytes,
            age_s=settings.batch_age_s,
            retry_base_s=settings.retry_base_s,
            retry_max_s=settings.retry_max_s,
        )
