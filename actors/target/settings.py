"""What a processor is made with: its limits, and what an earlier run left of its targets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from actors.contract.addresses import Address
from actors.contract.raw_messages import SpillState
from actors.runtime.backoff import RETRY_BASE_S, RETRY_MAX_S
from actors.runtime.lending import Allowance
from changes.model.model import DdlPolicy
from changes.routes.routing import TargetRoute
from offsets.rebuild import Load


@dataclass(frozen=True, slots=True)
class ProcessorSettings:
    """When a batch is due, and how much may be held. The configuration has the defaults.

    ``memory`` bounds the raw messages of all this processor's buffers, in bytes; at that bound the
    largest is staged. ``staged`` bounds its staged files; beyond it data is left waiting.
    """

    batch_messages: int
    batch_bytes: int
    batch_age_s: float
    buffer_bytes: int
    memory: Allowance
    staged: Allowance
    writers: int
    """Writes in flight at most. No more than there are writers: a batch that would only queue
    grows instead, so under load there are fewer and larger writes. No fewer: a writer that is
    free is never left waiting by targets that hang."""
    dead_letters: bool
    """Records that can't be decoded are stored and passed over, instead of stopping a target."""
    quarantine: bool
    """A target that its sink refuses is quarantined, instead of stopping the pipeline."""
    quarantine_bytes: int
    """Bounds one target's spill; at the bound its messages wait, and with them, once memory is
    full, everything else."""
    quarantine_full_stops: bool
    """At that bound the pipeline stops instead."""
    away_after_s: float | None
    """A target whose sink has not answered for so long is written into its spill, so that targets
    in other sinks go on. None: it waits, as does all that is read once memory is full."""
    away_spill_bytes: int
    """Bounds the spill of a target whose sink is away; at the bound its messages wait."""
    paused: frozenset[str]
    """The targets among these names are not written: a person paused them in an earlier run."""
    loads: Mapping[str, Load]
    """By the name of the table that is filled."""
    load_spill_bytes: int
    """Bounds the spill of a target that is being loaded; at the bound the load is given up."""
    processors: int
    """How many the pipeline has: a target's number among them follows from its name."""
    group: str
    """See ``StagedBatch.group``."""
    ddl: DdlPolicy
    partitioner: str | None = None
    """What chose each record's partition by its key (``changes.model.partitioners``), where each
    key has one partition; None: partitions say nothing of keys."""
    counts: Address | None = None
    """Who is told of the changes that targets hold, by minute; None: they are not counted."""
    together: frozenset[str] = frozenset()
    """The sinks whose targets are written at cuts alone, all in one transaction each."""
    reread_offsets: int = 20_000
    """How much of the log is read again at once for a spill."""
    retry_base_s: float = RETRY_BASE_S
    retry_max_s: float = RETRY_MAX_S


@dataclass(frozen=True, slots=True)
class OpenSpill:
    """A target with a spill since an earlier run, and what that holds."""

    route: TargetRoute
    reason: str
    state: SpillState
    away: bool = False
    """Its sink was away: it is no quarantine."""
