"""A comparison at rest: the target as it is in a cut, the source as it is now.

A row that differs is wrong in the cut only if the log has no change of it since the cut's place:
then the source had the present row at the cut, too. Rows that changed since can't be compared: what
they were then is nowhere but in the cut.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from changes.model.model import TargetName
from daemon.config.pipeline_config import PipelineConfig
from daemon.operations.verify.in_flight import Ends
from daemon.operations.verify.in_flight_here import LiveLookout
from daemon.state.cuts_table import CutsTable
from daemon.state.edits import EditRefused
from databases.base.errors import DatabaseError
from offsets.cuts import Cut, why_withdrawn
from offsets.position import TopicPartition
from offsets.snapshot import Snapshot
from sparkwriter.kit.queries import NoAnswer

CUT = "at_cut"
"""The parameter of a job that compares at a cut; ``AtCut.document`` is what it holds."""


class AtCut(NamedTuple):
    """What a comparison needs of a cut. ``places``: below them everything is in the cut, and
    nothing else. ``versions``: by target its snapshot; ``left_out``: of those that the cut is
    without, why."""

    number: int
    time_ms: int | None
    transaction: str | None
    places: Ends
    versions: Mapping[str, str]
    left_out: Mapping[str, str]

    def document(self) -> dict[str, Any]:
        """As JSON keeps it."""
        return {
            "number": self.number,
            "time_ms": self.time_ms,
            "transaction": self.transaction,
            "positions": {str(source): at for source, at in self.places.items()},
            "versions": dict(self.versions),
            "left_out": dict(self.left_out),
        }

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> AtCut:
        """Read back what ``document`` gave. Raises KeyError, TypeError, ValueError."""
        places = {TopicPartition.parse(n): int(at) for n, at in document["positions"].items()}
        number, time_ms = int(document["number"]), document["time_ms"]
        tables = dict(document["versions"]), dict(document["left_out"])
        return cls(number, time_ms, document["transaction"], places, *tables)

    def refuses(self, target: str, recorded: Snapshot) -> str | None:
        """Why a target can't be compared as it is in the cut; None: it can, and the log tells what
        has changed since."""
        if target not in self.versions:
            return self.left_out[target]
        for source, at in self.places.items():
            state = recorded.partitions.get(source)
            if state is None or state.frontier < at:
                return f"cut {self.number} is of offset {at} of {source}, which is not read here"
            if state.begin is not None and state.begin > at:
                return f"{source} is read from offset {state.begin} on, behind cut {self.number}"
        return None


def read_cut(pipeline: PipelineConfig, number: int) -> Cut:
    """A pipeline's cut. Raises EditRefused, also where it is withdrawn."""
    try:
        table = CutsTable(pipeline)
        (found,) = table.read([number])
        (by,) = table.withdrawn([found])
    except (NoAnswer, DatabaseError) as error:
        raise EditRefused(str(error)) from error
    if by is not None:
        raise EditRefused(f"{why_withdrawn(found, by)}; a later cut can be compared")
    return found


def why_not_in(cut: Cut, target: TargetName, kept: Collection[str]) -> str | None:
    """Why a table can't be compared as it is in a cut; None: it can. ``kept``: the sinks that have
    former versions of their tables."""
    name = str(target)
    if target.sink not in kept:
        return f"sink {target.sink} keeps no former versions of its tables"
    if name in cut.left_out:
        return f"cut {cut.number} is without it: {cut.left_out[name]}"
    return None if name in cut.versions else f"cut {cut.number} knows no such table"


def at_cut(cut: Cut, targets: Sequence[TargetName], kept: Collection[str]) -> AtCut:
    """What a comparison of these needs. ``kept``: as of ``why_not_in``."""
    reasons = {str(target): why_not_in(cut, target, kept) for target in targets}
    left_out = {name: why for name, why in reasons.items() if why is not None}
    versions = {name: cut.versions[name] for name in reasons if name not in left_out}
    places = dict(cut.positions)
    return AtCut(cut.number, cut.time_ms, cut.transaction, places, versions, left_out)


class CutLookout(LiveLookout):
    """``Lookout`` of a target at rest: it waits for no write."""

    def __init__(self, places: Ends, *here: Any) -> None:
        """``places``: the cut's, in the log. ``here``: as of ``LiveLookout``."""
        super().__init__(*here)
        self._places = places

    def begins(self) -> Ends:
        """The cut's place in the log: what came before is in the target."""
        return self._places

    def passed(self, begins: Ends) -> Ends:
        """The moment is of now, so the search need not begin at the cut."""
        return super().passed({**begins, **super().begins()})

    def held(self, ends: Ends) -> None:
        """At once: the target is what it was."""
