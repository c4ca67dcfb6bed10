"""Which rows of a changelog are above the marks that it is to have."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from actors.contract.ports import TargetRefused
from offsets.position import TopicPartition


def rows_above(
    before: Mapping[TopicPartition, int],
    after: Mapping[TopicPartition, int],
    column: Callable[[str], str] = "`{}`".format,
) -> str | None:
    """The SQL condition that holds for them, None where no mark is lowered. ``column`` makes an
    identifier of a column's name.

    A row says its partition's number and not its topic, so where another topic of the same
    number is in the table nobody can tell whose a row is. Raises TargetRefused.
    """
    lowered = sorted(source for source, mark in after.items() if mark < before[source])
    for source in lowered:
        for other in before:
            if other.partition == source.partition and other.topic != source.topic:
                raise TargetRefused(
                    f"its rows of {source} can't be told from those of {other}: a changelog names"
                    " the partition, not the topic. It can't be reset; read into another target"
                )
    partition, offset = column("_partition"), column("_offset")
    terms = [f"({partition} = {s.partition} AND {offset} > {after[s]})" for s in lowered]
    return " OR ".join(terms) or None
