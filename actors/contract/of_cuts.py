"""Messages about cuts: from the boundary in the log to the row that lists a cut."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from actors.contract.addresses import Address
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
class CutReached:
    """All tables of a pipeline stand at a boundary of its log: to the actor that makes cuts.

    ``versions``: by target the version that it shows. ``left_out``: by target why it is elsewhere.
    """

    asked: CutAsked
    versions: Mapping[str, str]
    left_out: Mapping[str, str]


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
class Tagged:
    """The version has its name. ``Failed`` says that it has not."""

    target: TargetName
