"""Refuses rows of a second partition for a keyed table, unless something gives an order.

Partitions have no order between them: an older row of a second one would be written over a newer
one. No order is needed where each key has one partition (``offsets.key_partitioning``), and source
positions in the rows give one. The rule is applied twice: by the processor where it has staged
rows, and by the sink inside the publish, because only there the lanes of the group's other members
are known. A lane is known by its mark, whatever moved it there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from actors.contract.writes import StagedBatch
from changes.model.errors import TargetRefused
from changes.model.model import Mode
from offsets.fence import Straggler, of_streams
from offsets.key_partitioning import KeyPartitioning
from offsets.position import TopicPartition


def has_order(mode: Mode | None, carried: str | None, kept: str | None) -> bool:
    """Whether rows of several partitions may be written: as a list of changes, or with the source
    positions that they carry, where the target keeps just these."""
    return mode is not Mode.UPSERT or (carried is not None and carried == kept)


def second_lane(
    target: str,
    source: TopicPartition,
    place: str,
    lanes: Iterable[TopicPartition],
    carried: str | None,
) -> str | None:
    """Why rows without an order are not written, None where theirs is the target's only lane.

    ``place``: where in ``source`` they are. ``lanes``: those of which the target holds something,
    or is about to.
    """
    others = set(lanes) - {source}
    if not others:
        return None
    return (
        f"{source} {place}: {target} already holds changes of "
        f"{', '.join(map(str, sorted(others)))}: partitions have no order between them, so a "
        f"table's changes must all be in one ({_way_out(carried)})"
    )


def check_one_lane(
    batch: StagedBatch,
    marks: Mapping[TopicPartition, int],
    kept: str | None,
    held: KeyPartitioning | None,
) -> None:
    """Raise TargetRefused where a batch's rows would come beside another lane's, without an order.
    Raise Straggler where another member of the group knew of more partitions: what it knew is the
    target's now, and the rows are checked once more.

    For a sink, which shows ``marks`` now, keeps the positions ``kept``, and knows that its keys are
    spread as ``held`` says. The publish's compare-and-set must make sure that nothing comes between
    this look and the publish.
    """
    if batch.path is None or has_order(batch.mode, batch.positions, kept):
        return
    if batch.key_partitioning is not None:
        if batch.key_partitioning.is_behind(held):
            raise Straggler("another member has heard of more partitions")
        if (why := batch.key_partitioning.problem_after(held, marks)) is not None:
            raise TargetRefused(why)
        return
    # A repair names lanes where they stand: its rows are of no lane.
    moved = {s: span for s, span in of_streams(batch.lanes).items() if span.through > span.after}
    lanes = {*marks, *moved}
    for source, span in moved.items():
        place = f"up to offset {span.through}"
        why = second_lane(str(batch.target), source, place, lanes, batch.positions)
        if why is not None:
            raise TargetRefused(why)


def _way_out(carried: str | None) -> str:
    if carried is not None:
        return (
            f"the table was made without the positions {carried}: rebuild it, or route the "
            "second one to another target"
        )
    return (
        'set partitioned_by = "key" where each key is always in one partition, route the second '
        'one to another target, use mode = "append", or set positions where the messages carry any'
    )
