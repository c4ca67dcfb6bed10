"""Whether a table holds all that its source had committed up to a moment. Pure.

The moment is a place in the log of each partition (``daemon.operations.engine.source_watermarks``):
all that was committed until then is below it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from offsets.cuts import Cut
from offsets.position import NO_OFFSET, TopicPartition
from offsets.snapshot import MarkMoves, Snapshot

NEVER_WRITTEN = "nothing was ever written to it: if that is as it should be, say --empty"


def why_shut(
    recorded: Snapshot,
    target: str,
    ends: Mapping[TopicPartition, int],
    letters: Iterable[tuple[TopicPartition, int]],
    may_be_empty: bool = False,
) -> str | None:
    """Why a target may lack something that is below the ends; None: it holds all of that.

    ``letters``: the places of the open dead letters that are this target's, or no single one's.
    ``may_be_empty``: a target that nothing was written to is no reason. A record is seconds old:
    what was written since is not known.
    """
    mark = recorded.targets.get(target)
    if mark is None and not may_be_empty and target not in recorded.spills:
        return NEVER_WRITTEN
    if mark is not None and mark.rows_may_differ is not None:
        return f"stored rows may differ from the source's: {mark.rows_may_differ}"
    rebuild = recorded.rebuilding.get(target)
    if rebuild is not None:
        return f"it is being {'rebuilt' if rebuild.load is None else 'loaded'}"
    hwms = {} if mark is None else (mark.moves or MarkMoves()).of(mark.hwms)
    spill = recorded.spills.get(target)
    for source, end in sorted(ends.items()):
        state = recorded.partitions.get(source)
        if state is None:
            return f"nothing of {source} is read yet"
        if state.begin is not None and state.begin >= end > 0:
            return f"{source} is read from offset {state.begin} on, {end} is needed: load the table"
        if state.frontier < end and hwms.get(source, NO_OFFSET) < end - 1:
            return f"the committed position of {source} is {state.frontier}, {end} is needed"
        if spill is not None and spill.lanes.get(source, (end, end))[0] < end:
            away = "it is paused, or its sink is away" if spill.away else "it is in quarantine"
            return f"{away}: messages below offset {end} of {source} are kept in its spill"
    bad = sorted((source, at) for source, at in letters if at < ends.get(source, NO_OFFSET))
    if bad:
        more = f", and {len(bad) - 1:,} more" if len(bad) > 1 else ""
        return f"a dead letter is open: {bad[0][0]}:{bad[0][1]}{more}"
    return None


def cut_lacks(
    cut: Cut, recorded: Snapshot, targets: Iterable[str], ends: Mapping[TopicPartition, int]
) -> str | None:
    """Why some target may lack something in a cut that is below the ends; None: none does.

    ``recorded``: a record in which each of these targets holds all below the ends.
    """
    is_behind = all(cut.positions.get(source, NO_OFFSET) >= end for source, end in ends.items())
    for target in targets:
        if target in cut.left_out:
            return f"cut {cut.number} is without {target}: {cut.left_out[target]}"
        mark = recorded.targets.get(target)
        if target not in cut.versions:
            if mark is None:
                continue  # nothing was ever written to it
            return f"cut {cut.number} knows no {target}"
        # A table that did not change since is in the cut as it is now.
        if not is_behind and (mark is None or mark.version != cut.versions[target]):
            return f"cut {cut.number} was made before"
    return None
