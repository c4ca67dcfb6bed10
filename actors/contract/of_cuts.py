"""Messages about cuts: from the boundary in the log to the row that lists a cut."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from actors.contract.addresses import Address
from actors.contract.of_outcomes import Failed, Published, WriteBatch
from changes.model.model import TargetName
from offsets.cuts import Boundary, KeepCuts
from offsets.position import TopicPartition


@dataclass(frozen=True, slots=True)
class CutAsked:
    """The fetcher holds what follows these places until all that comes before them is written. To
    the committer, behind what it was told of those messages.

    ``positions``: of each partition that is read, with its epoch in ``epochs``, the offset below
    which everything is in the cut. ``time_ms`` and ``transaction``: of the boundary, as of
    ``offsets.cuts.Cut``.
    """

    epochs: Mapping[TopicPartition, int]
    positions: Mapping[TopicPartition, int]
    boundary: Boundary
    time_ms: int | None
    transaction: str | None


@dataclass(frozen=True, slots=True)
class CutOver:
    """The cut is recorded, or given up: reading goes on."""

    asked: CutAsked


@dataclass(frozen=True, slots=True)
class CutAwaits:
    """What has still to be written before the boundary is reached: to the actor that makes cuts,
    where targets are written together.

    ``pending``: by target, of each partition the last offset that is not written. None: the cut is
    given up, since partitions went away.
    """

    pending: Mapping[str, Mapping[TopicPartition, int]] | None


@dataclass(frozen=True, slots=True)
class PipelineStops:
    """Nothing more is written that waits for a cut: to the actor that makes cuts."""


@dataclass(frozen=True, slots=True)
class CutSoon:
    """More is held for the next cut than one write takes: to the fetcher, which seeks a boundary
    now."""


@dataclass(frozen=True, slots=True)
class WriteTogether:
    """Publish several targets' batches in one transaction of their sink, or none of them. Of each
    write is told how it ended, as if it were alone; where none is written, ``reply_to`` hears."""

    writes: tuple[WriteBatch, ...]
    reply_to: Address
    locks_s: float
    """How long it waits for a lock that somebody else has."""


@dataclass(frozen=True, slots=True)
class PublishedTogether:
    """The targets show the writes, each in its place."""

    published: tuple[Published, ...]


@dataclass(frozen=True, slots=True)
class NotTogether:
    """None of the writes is published, since one failed. ``failed``: which one and why; None where
    the transaction failed for no single one's sake, and trying again can't help. ``away``: no
    other could be written either."""

    writes: tuple[WriteBatch, ...]
    failed: Failed | None
    reason: str
    away: bool = False


@dataclass(frozen=True, slots=True)
class CutReached:
    """All tables of a pipeline stand at a boundary of its log: to the actor that makes cuts.

    ``versions``: by target the version that it shows. ``left_out``: by target why it is elsewhere.
    """

    asked: CutAsked
    versions: Mapping[str, str]
    left_out: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class CutsWithdrawn:
    """No cut that has more than is below these offsets stands any more: to the committer, which
    remembers until then that one may."""

    positions: Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class TagVersion:
    """Name a version of a target's table as a cut's (``ports.Tags``). ``above``: first remove the
    tags of cuts beyond that number, which a crash left; None: there are none."""

    target: TargetName
    version: str
    number: int
    keep: KeepCuts
    reply_to: Address
    above: int | None = None


@dataclass(frozen=True, slots=True)
class SayThrough:
    """Have a target's table say through when gates have found it complete (``ports.Tags``).
    ``moments``: by gate."""

    target: TargetName
    moments: Mapping[str, str]
    reply_to: Address


@dataclass(frozen=True, slots=True)
class Tagged:
    """The version has its name, or the table says it. ``Failed`` says that it has not.
    ``is_there``: False where there is no table yet that could say something."""

    target: TargetName
    is_there: bool = True
