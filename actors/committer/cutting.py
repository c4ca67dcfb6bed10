"""Says when all tables of a pipeline stand at the boundary of a cut, and which do not."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

from actors.contract import effects as fx
from actors.contract import messages as msg
from actors.contract.addresses import Address
from offsets.ledger import LaneLedger
from offsets.position import NO_OFFSET, Lane, TopicPartition
from offsets.rebuild import Rebuild
from offsets.snapshot import SpillMark, TargetMark

OTHERS = "(all other tables)"
"""Stands for targets that nothing here knows of: their names are in the sink alone."""

ALL = "(all tables)"

ADOPTED = "they got no change since offset {}, where no record was left"
DIFFERS = "stored rows may differ from the source's: {}"
AGAIN = "the log is read again up to offset {}: they may hold more than lies below the boundary"


class CutWatch:
    """One per pipeline; used by the committer's thread alone. Times are monotonic seconds.

    A target that is still on its way when the patience ends is left out by name: it holds up
    neither the other tables' cut nor the reading.
    """

    def __init__(self, pipeline: str, patience_s: float = 10.0, *, together: bool = False) -> None:
        """``patience_s``: how long a cut waits for a target. ``together``: who makes cuts is told
        what it still waits for (``actors.together``)."""
        self._cuts, self._fetcher = Address(pipeline, "cuts"), Address(pipeline, "fetcher")
        self._patience_s = patience_s
        self._asked: msg.CutAsked | None = None
        self._until = 0.0
        self._together = together
        self._told: Mapping[str, Mapping[TopicPartition, int]] | None = None
        self._unseen: set[str] = set()

    @property
    def waits(self) -> bool:
        """Whether the fetcher stands at a boundary."""
        return self._asked is not None

    def ask(self, asked: msg.CutAsked, now: float) -> None:
        """The fetcher stands at a boundary."""
        self._asked, self._until, self._told = asked, now + self._patience_s, None

    def drop(self, sources: Container[TopicPartition]) -> list[fx.CommitterEffect]:
        """These partitions go away, or come again: the fetcher holds nothing of them."""
        if self._asked is None or not any(each in sources for each in self._asked.positions):
            return []
        self._asked = None
        return [fx.Tell(self._cuts, msg.CutAwaits(None))] if self._together else []

    def passed_on(self, targets: Iterable[str]) -> None:
        """Another member has read on meanwhile: what is recorded of these may be out of date."""
        self._unseen.update(targets)

    def seen(self, target: str) -> None:
        """What is recorded of a target is what it shows."""
        self._unseen.discard(target)

    def look(
        self,
        ledger: LaneLedger,
        marks: Mapping[str, TargetMark],
        spills: Mapping[str, SpillMark],
        rebuilds: Mapping[str, Rebuild],
        reread: Mapping[TopicPartition, int | None],
        adopted: int | None,
        now: float,
    ) -> list[fx.CommitterEffect]:
        """Say so where the boundary is reached, or waited for in vain. ``reread``, ``adopted``: as
        of ``offsets.snapshot.PartitionState``; ``adopted`` is the lowest."""
        asked = self._asked
        if asked is None:
            return []
        short = [each for each, at in asked.positions.items() if ledger.frontier(each) < at]
        if short and now < self._until:
            return self._awaits(ledger, asked)
        self._asked = None
        behind = [name for source in short for name, _ in ledger.holders(source)]
        stand_ins = {rebuild.into for rebuild in rebuilds.values()}
        left_out = self._on_their_way(behind, spills, rebuilds)
        versions: dict[str, str] = {}
        for name, mark in marks.items():
            if name in stand_ins or name in left_out:
                continue
            if (why := self._elsewhere(name, mark, asked)) is not None:
                left_out[name] = why
            elif mark.version is not None:  # else it was dropped, or renamed away
                versions[name] = mark.version
        left_out = {name: why for name, why in left_out.items() if name not in stand_ins}
        if adopted is not None:
            left_out[OTHERS] = ADOPTED.format(adopted)
        for source, at in sorted(asked.positions.items()):
            if (again := reread.get(source) or NO_OFFSET) > at:
                versions, left_out = {}, {ALL: AGAIN.format(again)}
        told = msg.CutReached(asked, versions, left_out)
        return [fx.Tell(self._cuts, told), fx.Tell(self._fetcher, msg.CutOver(asked))]

    def _awaits(self, ledger: LaneLedger, asked: msg.CutAsked) -> list[fx.CommitterEffect]:
        """What has still to be written, where that is to be told and is other than before."""
        if not self._together:
            return []
        pending: dict[str, dict[TopicPartition, int]] = {}
        for source in asked.positions:
            for name, _ in ledger.holders(source):
                if (ends := ledger.pending(Lane(source, name))) is not None:
                    pending.setdefault(name, {})[source] = ends[1]
        if pending == self._told:
            return []
        self._told = pending
        return [fx.Tell(self._cuts, msg.CutAwaits(pending))]

    def _elsewhere(self, name: str, mark: TargetMark, asked: msg.CutAsked) -> str | None:
        """Why a target may show anything but what comes before the boundary; None: it does not."""
        if name in self._unseen:
            return "another member has read meanwhile, and it got no change since"
        if any(mark.hwms.get(each, NO_OFFSET) >= at for each, at in asked.positions.items()):
            # After a restart the log is read again from the frontier, which some are beyond.
            return "it is beyond the boundary since an earlier run"
        if mark.version is None or mark.rows_may_differ is None:
            return None
        return DIFFERS.format(mark.rows_may_differ)

    def _on_their_way(
        self,
        behind: Iterable[str],
        spills: Iterable[str],
        rebuilds: Mapping[str, Rebuild],
    ) -> dict[str, str]:
        """The targets that do not hold all that came for them, each with why."""
        found = dict.fromkeys(behind, f"not written within {self._patience_s:g} s")
        found |= dict.fromkeys(spills, "its messages are in its spill")
        # What came since its rebuild began is in the new table alone.
        return found | {
            name: "it is being loaded" if rebuild.load is not None else "it is being rebuilt"
            for name, rebuild in rebuilds.items()
            if not rebuild.cancelled
        }
