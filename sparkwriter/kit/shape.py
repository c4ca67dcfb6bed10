"""Which shape a target's rows have: that of its route, and no other.

Rows of two shapes in one table would be an unintended difference. Kept with the target,
so that a route that was changed is noticed at the next write, after a restart and in another member
too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from actors.contract.writes import StagedBatch
from changes.model.errors import TargetRefused
from changes.routes.shaping.layout import differing, keeps_history, only_adds
from offsets.position import TopicPartition
from settings.shell import quoted
from sparkwriter.kit.store import E, TableStore


def check_shape(batch: StagedBatch, held: str) -> None:
    """Raise TargetRefused where the target's rows have another shape than the batch's.

    Columns that are shown, too, from now on may come: ``columns_added`` tells of them.
    """
    if held == batch.shape or only_adds(held, batch.shape):
        return
    keys = ", ".join(differing(held, batch.shape))
    raise TargetRefused(
        f"its rows were shaped by another route than the present one ({keys}): fill it again with"
        f" `binlogd tables rebuild {quoted(batch.target)}`, or give the route its former keys"
    )


def check_reset(
    held: str, before: Mapping[TopicPartition, int], after: Mapping[TopicPartition, int]
) -> None:
    """Raise TargetRefused where marks are lowered under a history: what was written once would end
    versions of today."""
    lowered = any(mark < before[source] for source, mark in after.items())
    if lowered and keeps_history(held):
        raise TargetRefused(
            "it keeps the history of its rows, which can't be written a second time: fill it again"
            " with `binlogd tables rebuild`"
        )


def check_whole(store: TableStore[E], batch: StagedBatch, seen: E) -> None:
    """Raise TargetRefused where rows that may be new lack columns of the target."""
    unread = batch.filter is not None and not store.capabilities.read_rows
    if batch.path is None or not (batch.whole or unread):
        return
    lacking = [*(batch.partial if unread else ()), *lacked(store, batch, seen)]
    if lacking:
        raise not_whole(lacking[0])


def lacked(store: TableStore[E], batch: StagedBatch, seen: E) -> list[str]:
    """The target's columns that no row of the batch has. Those that the source has dropped, and
    the target keeps, are none."""
    here = {column.name.lower() for column in batch.schema.columns}
    held = [column.name for column in seen.stored.schema.columns if column.name.lower() not in here]
    if held:
        gone = store.columns(seen).gone
        held = [name for name in held if name.lower() not in gone]
    return held


def not_whole(column: str) -> TargetRefused:
    """Why rows that may be new are not taken."""
    return TargetRefused(
        f"rows come without column {column}, which the target has, and a filter needs whole "
        "rows: have the source send them (binlog_row_image = FULL, REPLICA IDENTITY FULL), or "
        "name the column in drop_columns"
    )


def columns_added(batch: StagedBatch, held: str) -> list[str]:
    """What to report of a target that shows more columns than before."""
    if held == batch.shape or batch.is_barrier:
        return []
    return [
        f"{batch.target}: its route shows more columns than before: NULL in them where a row did "
        "not change since"
    ]


def shape_after(batch: StagedBatch, held: str) -> str:
    """Which shape it has once the batch is published. A statement's write has no rows."""
    return held if batch.is_barrier else batch.shape


# Which rows of a changelog are above the marks that it is to have.


def rows_above(
    before: Mapping[TopicPartition, int],
    after: Mapping[TopicPartition, int],
    column: Callable[[str], str] = "`{}`".format,
) -> str | None:
    """The SQL condition that holds for them, None where no mark is lowered. ``column`` makes an
    identifier of a column's name.

    A row says its partition's number and not its topic, so where another topic of the same
    number is in the table it is unknown whose a row is. Raises TargetRefused.
    """
    lowered = sorted(source for source, mark in after.items() if mark < before[source])
    for source in lowered:
        for other in before:
            if other.partition == source.partition and other.topic != source.topic:
                raise TargetRefused(
                    f"its rows of {source} can't be distinguished from those of {other}: a "
                    "changelog names the partition, not the topic. It can't be reset; read into"
                    " another target"
                )
    partition, offset = column("_partition"), column("_offset")
    terms = [f"({partition} = {s.partition} AND {offset} > {after[s]})" for s in lowered]
    return " OR ".join(terms) or None
