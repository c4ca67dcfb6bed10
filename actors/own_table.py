"""A table of binlogd's own in a sink, as the actor that fills it writes it.

It is a target like any other: its mark is the number of the last write, so that a daemon that was
replaced can't add to it, and nothing is written twice.
"""

from __future__ import annotations

from actors.contract import effects as fx
from actors.contract import messages as msg
from actors.contract.addresses import WRITERS, Address
from actors.contract.writes import StagedBatch
from changes.model.model import Mode, TableName, TableSchema, TargetName
from offsets.fence import Span
from offsets.position import NO_OFFSET, TopicPartition


class OwnTable:
    """One, of one actor. ``last`` is the number of the last write, None before it is known."""

    def __init__(
        self, what: str, pipeline: str, group: str, name: TargetName, schema: TableSchema, run: str
    ) -> None:
        """``what`` it has, in one word, as its actor is named. ``run`` makes names of writes
        unique over restarts."""
        self.name, self._schema = name, schema
        self._me = Address(pipeline, what)
        self._id = f"{run}-{pipeline}-{what}"
        self._lane = TopicPartition(f"({what} of {pipeline}, {group})", 0)
        # Of a source's table that a route leads here, and of another group, it is refused.
        self._owner = TableName(f"{what} of pipeline {pipeline}", f"group {group}")
        self.is_open, self.last = False, NO_OFFSET

    def open(self) -> fx.Tell:
        """Have its mark read."""
        return fx.Tell(WRITERS, msg.OpenTarget(self.name, self._me))

    def opened(self, opened: msg.Opened) -> None:
        """This is its mark."""
        self.is_open, self.last = True, opened.state.hwms.get(self._lane, NO_OFFSET)

    def write(self, number: int, staged: msg.OwnStaged, rows: int) -> fx.Tell:
        """Write staged rows, by their keys. ``number``: above the last one."""
        batch = StagedBatch(
            batch_id=f"{self._id}-{number}",
            target=self.name,
            mode=Mode.UPSERT,
            schema=self._schema,
            lanes={self._lane: Span(self.last, number)},
            path=staged.path,
            rows=rows,
            changes=rows,
            table=self._owner,
            bounds=staged.bounds,
        )
        through = {self._lane: number}
        return fx.Tell(WRITERS, msg.WriteBatch(batch, {self._lane: 0}, through, self._me, None))

    def written(self, number: int) -> None:
        """The write is published."""
        self.last = number

    def lost(self) -> None:
        """Somebody may have moved its mark: it is read again before the next write."""
        self.is_open = False
