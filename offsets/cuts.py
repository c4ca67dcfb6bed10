"""Cuts: all tables of a pipeline as of one point of its log, and which of them are kept. Pure.

In each table a snapshot is tagged ``cut-N``; one row in the table of cuts then makes cut N visible.
A table gets a tag only where it changed since its last one: it is in all later cuts by that.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import Literal

from offsets.position import TopicPartition

TAG = "cut-"
"""What the tags of cuts begin with."""

HOUR_S, DAY_S = 3600, 86_400

Boundary = Literal["transaction", "time", "withdrawn"]
"""Where a cut goes through the log: between two transactions, or at a time of the source's. Or it
is none: what lies above its positions is read again, and earlier cuts that have it are withdrawn.
"""

WITHDRAWN: Boundary = "withdrawn"


@dataclass(frozen=True, slots=True)
class Cut:
    """One cut. Targets are named as ``str(TargetName)`` has them."""

    number: int
    """Unix seconds of its making, or one more than the last one's."""
    pipeline: str
    boundary: Boundary
    positions: Mapping[TopicPartition, int]
    """Of each partition the offset below which everything is in the cut, and nothing else."""
    time_ms: int | None
    """The source's time at the boundary, else the log's; None where neither is known."""
    transaction: str | None
    """The last transaction in it (a GTID, an LSN, an id), where records name it."""
    versions: Mapping[str, str]
    """By target its sink's version. Iceberg: the snapshot's id."""
    left_out: Mapping[str, str]
    """By target why the cut is without it, in one line."""


def next_number(last: int | None, now: float) -> int:
    """The number of a cut that is made ``now``, in Unix seconds, after cut ``last``."""
    return int(now) if last is None else max(last + 1, int(now))


def withdrawn_by(cut: Cut, withdrawals: Iterable[Cut]) -> Cut | None:
    """The first of these that withdraws a cut; None: it stands."""
    later = (one for one in withdrawals if one.number > cut.number and _reaches_below(one, cut))
    return min(later, key=lambda one: one.number, default=None)


def _reaches_below(withdrawal: Cut, cut: Cut) -> bool:
    return any(at < cut.positions.get(source, at) for source, at in withdrawal.positions.items())


def why_withdrawn(cut: Cut, by: Cut) -> str:
    """That a cut is withdrawn, in one line."""
    at = ", ".join(f"{source} from offset {at} on" for source, at in sorted(by.positions.items()))
    made = datetime.fromtimestamp(by.number, UTC).isoformat()
    return f"cut {cut.number} is withdrawn since {made}: an offsets reset had {at} read again"


def tag_of(number: int) -> str:
    """The name of a cut's tags."""
    return f"{TAG}{number}"


def number_of(tag: str) -> int | None:
    """The cut that a tag is of; None: of none."""
    found = re.fullmatch(TAG + "([1-9][0-9]{0,17})", tag)
    return None if found is None else int(found[1])


@dataclass(frozen=True, slots=True)
class KeepCuts:
    """Which cuts are kept: the newest one, those of the last ``recent_s`` seconds, and for each
    full hour of the last ``hourly_days`` days the last cut before it."""

    recent_s: float
    hourly_days: int

    def recent(self, number: int, now: int) -> bool:
        """Whether a cut of this number is one of the last seconds'."""
        return number > now - self.recent_s

    def hourly(self, number: int, end: int, now: int) -> bool:
        """Whether a full hour of the last days comes behind ``number`` and not behind ``end``."""
        oldest = now - self.hourly_days * DAY_S
        hour = (max(number, oldest) // HOUR_S + 1) * HOUR_S
        return hour <= min(end, now)


def needed(numbers: Iterable[int], now: int, keep: KeepCuts) -> set[int]:
    """Which tags of one table are needed, of all that it has, as of Unix second ``now``.

    Each tag stands for its table in all cuts from its own on, until the next tag's. The newest two
    are always needed: a crash may come between the newest one and its cut's row, and then the last
    cut that is visible has the one before. A tag that is not needed now never is later.
    """
    ordered = sorted(set(numbers))
    pairs = pairwise(ordered)
    held = {tag for tag, end in pairs if keep.recent(end - 1, now) or keep.hourly(tag, end, now)}
    return held.union(ordered[-2:])


def kept(number: int, numbers: Collection[int], now: int, keep: KeepCuts) -> bool:
    """Whether a cut is still promised, of all ``numbers`` of cuts, as of Unix second ``now``.

    Tags go when a later cut is made, so the newest cut is there whatever the time is.
    """
    end = min((other for other in numbers if other > number), default=None)
    return end is None or keep.recent(number, now) or keep.hourly(number, end, now)
