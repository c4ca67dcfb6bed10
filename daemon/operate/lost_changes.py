"""Marks a table whose load or rebuild was given up after the log had lost what came meanwhile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from actors.contract.writes import Doubt, StagedBatch, TargetState
from changes.model import TargetName
from offsets.fence import Span
from offsets.position import TopicPartition


def lacking(
    target: TargetName, state: TargetState, lost: Mapping[TopicPartition, int], shape: str
) -> Iterator[StagedBatch]:
    """The writes, without rows, by which a table says so: one a lane. None where there is no table,
    or where its marks are beyond what is lost. ``shape``: see ``StagedBatch``."""
    if state.schema is None or state.mode is None:
        return
    for source, mark in sorted(state.hwms.items()):
        last = lost.get(source, 0) - 1
        if mark < last:
            why = (
                f"the log lost {source} below {last + 1}, which came while a load or rebuild of it "
                "was under way that was given up"
            )
            yield StagedBatch(
                batch_id=f"lost-{source}-{last}",
                target=target,
                mode=state.mode,
                schema=state.schema,
                lanes={source: Span(mark, last)},
                doubts=(Doubt(why, amid=True),),
                shape=shape,
            )
