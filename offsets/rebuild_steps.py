"""Steps of a rebuild, as changes of a pipeline's snapshot. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from offsets.position import TopicPartition
from offsets.rebuild import Load, LoadHindered, Rebuild, SwapRefused, last_held
from offsets.snapshot import PartitionState, Snapshot, TargetMark


def lanes_of(snapshot: Snapshot, target: str) -> dict[TopicPartition, int]:
    """The partitions that feed a target, each with the last message that it may hold."""
    mark, spill = snapshot.targets.get(target), snapshot.spills.get(target)
    frontiers = {source: state.frontier for source, state in snapshot.partitions.items()}
    return last_held(
        {} if mark is None else mark.hwms, {} if spill is None else spill.lanes, frontiers
    )


def begun(
    snapshot: Snapshot, target: str, into: str, low: Mapping[TopicPartition, int], keep_old: bool
) -> Snapshot:
    """Have a target's partitions read again from ``low`` into the new table."""
    left = left_by(snapshot, target)
    rebuild = Rebuild(into, lanes_of(snapshot, target), keep_old, leftover=left)
    return moved_back(snapshot, low, {**snapshot.rebuilds, target: rebuild})


def left_by(snapshot: Snapshot, target: str) -> tuple[str, ...]:
    """The tables of a rebuild that was given up, which could not be removed so far."""
    earlier = snapshot.rebuilds.get(target)
    if earlier is None:
        return ()
    return (*earlier.leftover, earlier.into)


def behind(rebuild: Rebuild) -> dict[TopicPartition, int]:
    """From where on the old table has got nothing."""
    since = {} if rebuild.load is None else dict(rebuild.load.since)
    # A later attempt begins further on; what came before it, the old table lacks as well.
    since |= {source: min(at, since.get(source, at)) for source, at in rebuild.begun_at.items()}
    return since | {source: last + 1 for source, last in rebuild.until.items()}


def cancelled(
    snapshot: Snapshot, target: str, low: Mapping[TopicPartition, int] | None = None
) -> Snapshot:
    """Give a rebuild up: what came meanwhile is read again, because the old table did not get it.

    ``low``: where the logs begin now. What they have lost since can't be read again: the old table
    is marked for it (``Rebuild.lost``), and the other tables go on from where they are.
    """
    rebuild, begins = snapshot.rebuilds[target], low or {}
    since, states = behind(rebuild), snapshot.partitions
    # What the pipeline itself has not read by now is missing from every table: a start says so.
    read = {source: states[source].frontier for source in since if source in states}
    first = {s: min(begins.get(s, 0), read.get(s, at)) for s, at in since.items()}
    lost = {source: first[source] for source, at in since.items() if at < first[source]}
    abandoned = replace(rebuild, cancelled=True, lost=lost)
    there = {source: max(at, first[source]) for source, at in since.items()}
    return moved_back(snapshot, there, {**snapshot.rebuilds, target: abandoned})


def is_complete(snapshot: Snapshot, target: str) -> bool:
    """Whether the new table may take the old one's name.

    Not while some of its messages are in a spill: they count as done and are not in it.
    """
    rebuild = snapshot.rebuilds[target]
    frontiers = {source: state.frontier for source, state in snapshot.partitions.items()}
    return rebuild.into not in snapshot.spills and rebuild.passed_by(frontiers)


def refused(snapshot: Snapshot, target: str, why: SwapRefused) -> Snapshot:
    """The new table could not take its name: the pipeline goes on, and the job decides."""
    rebuild = replace(snapshot.rebuilds[target], refused=why)
    return replace(snapshot, rebuilds={**snapshot.rebuilds, target: rebuild})


def delayed(snapshot: Snapshot, target: str, marks: Mapping[TopicPartition, int]) -> Snapshot:
    """Go on filling: the old table holds more than was recorded of it."""
    extended = snapshot.rebuilds[target].ahead(marks)
    return replace(snapshot, rebuilds={**snapshot.rebuilds, target: extended})


def ended(snapshot: Snapshot, target: str) -> Snapshot:
    """The rebuild is over. What the new table holds is the target's now, unless it was given up.

    Tables of earlier attempts that are still there stay listed, as of a rebuild that was given up.
    """
    rebuild = snapshot.rebuilds[target]
    targets, spills = dict(snapshot.targets), dict(snapshot.spills)
    new = targets.get(rebuild.into)
    # Stores lay a snapshot over what they have: an entry goes by being emptied.
    for name in (rebuild.into, *rebuild.leftover):
        targets[name] = TargetMark(None, {})
        spills.pop(name, None)
    if not rebuild.cancelled:
        targets[target] = new or TargetMark(None, {})
        spills.pop(target, None)
    rest = {name: other for name, other in snapshot.rebuilds.items() if name != target}
    if rebuild.leftover:
        first, *others = rebuild.leftover
        rest[target] = Rebuild(first, {}, cancelled=True, leftover=tuple(others))
    return replace(snapshot, targets=targets, spills=spills, rebuilds=rest)


def without_spill(snapshot: Snapshot, into: str) -> Snapshot:
    """Nothing is kept for the new table any more; the rebuild is given up."""
    rest = {name: mark for name, mark in snapshot.spills.items() if name != into}
    return replace(snapshot, spills=rest)


def moved_back(
    snapshot: Snapshot, to: Mapping[TopicPartition, int], rebuilds: Mapping[str, Rebuild]
) -> Snapshot:
    """With frontiers moved back, never forward; the group's commit follows."""
    partitions = dict(snapshot.partitions)
    for source, offset in to.items():
        state = partitions.get(source)
        if state is None or offset < state.frontier:
            was = PartitionState(offset) if state is None else state
            partitions[source] = PartitionState(
                offset,
                None,
                reset=True,
                adopted=was.adopted,
                reread=was.reread,
                begin=was.begin,
                withdraws=was.withdraws,
            )
    return replace(snapshot, partitions=partitions, rebuilds=rebuilds)


# Steps of a load, as changes of a pipeline's snapshot. Pure.


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


def broken(rebuild: Rebuild, why: LoadHindered) -> Rebuild:
    """The load can't go on. What is said later of the same begins further behind."""
    load = rebuild.load
    assert load is not None
    before = load.broken
    if before is not None and not before.behind:
        why = before  # what was given up stays so
    elif before is not None and why.behind:
        further = {s: max(at, why.behind.get(s, at)) for s, at in before.behind.items()}
        why = LoadHindered(why.reason, {**why.behind, **further})
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
