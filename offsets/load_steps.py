"""Steps of a load, as changes of a pipeline's snapshot. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from offsets.load import Broken, Load
from offsets.position import TopicPartition
from offsets.rebuild import Rebuild
from offsets.rebuild_steps import lanes_of, left_by, moved_back
from offsets.snapshot import Snapshot, TargetMark


def begun_load(
    snapshot: Snapshot, target: str, into: str, load: Load, keep_old: bool = False
) -> Snapshot:
    """Have a target filled from the database into a new table, and read again from ``load.since``.

    Of a load that is under way it is the next attempt: its table is left to be removed.
    """
    earlier = snapshot.rebuilds.get(target)
    left = left_by(snapshot, target)
    if earlier is None or earlier.cancelled:
        lanes = lanes_of(snapshot, target)
        rebuild = Rebuild(into, lanes, keep_old, load=load, leftover=left, begun_at=load.since)
    else:
        rebuild = replace(earlier, into=into, load=load, leftover=left, refused=None)
    return moved_back(snapshot, load.since, {**snapshot.rebuilds, target: rebuild})


def loaded(snapshot: Snapshot, target: str, ends: Mapping[TopicPartition, int]) -> Snapshot:
    """All rows of the database are there: the stream may be applied over them."""
    rebuild = snapshot.rebuilds[target]
    assert rebuild.load is not None
    filled = replace(rebuild, load=replace(rebuild.load, ends=dict(ends)))
    return replace(snapshot, rebuilds={**snapshot.rebuilds, target: filled})


def broken(rebuild: Rebuild, why: Broken) -> Rebuild:
    """The load can't go on. What is said later of the same begins further behind."""
    load = rebuild.load
    assert load is not None
    before = load.broken
    if before is not None and not before.behind:
        why = before  # what was given up stays so
    elif before is not None and why.behind:
        further = {s: max(at, why.behind.get(s, at)) for s, at in before.behind.items()}
        why = Broken(why.reason, {**why.behind, **further})
    return replace(rebuild, load=replace(load, broken=why))


def tidied(snapshot: Snapshot, target: str) -> Snapshot:
    """The tables of earlier attempts are removed."""
    rebuild = snapshot.rebuilds[target]
    targets, spills = dict(snapshot.targets), dict(snapshot.spills)
    for name in rebuild.leftover:
        # Stores lay a snapshot over what they have: an entry goes by being emptied.
        targets[name] = TargetMark(None, {})
        spills.pop(name, None)
    rebuilds = {**snapshot.rebuilds, target: replace(rebuild, leftover=())}
    return replace(snapshot, targets=targets, spills=spills, rebuilds=rebuilds)
