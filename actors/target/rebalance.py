"""A processor's part of a rebalance: which writes are waited for, which are given up.

A write belongs to the assignments (epochs) that its messages were read under. Once one of them is
over, the write may still land, for its marks fence it, but it is never offered again: the next
owner of that lane would find that the mark has moved. The messages of its other lanes are only in
that batch, so they are read again from the log.

Each mark is kept with the group that moved it. A straggler of the own group is forgiven, however
often: the coordinator gives a partition to one member, so another writer of the lane ends at its
next poll, and writes no more than it holds by then. Then the marks are read again, and so are the
lanes of the batch.

So a mark that was read while rows of its lane are staged is none to go on from (``as_staged``).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from actors.contract import effects as fx
from actors.contract import messages as msg
from actors.contract.addresses import Address
from actors.contract.writes import TargetState
from actors.target.buffer import TargetBuffer
from offsets.position import NO_OFFSET, TopicPartition

Epochs = dict[TopicPartition, int]
"""Of each partition, the oldest assignment whose messages are still taken."""


def give_up(buffer: TargetBuffer, epochs: Epochs, fetcher: Address) -> list[fx.TargetEffect]:
    """Drop the write, and all that waits behind it in the lanes that are still owned.

    What these lanes bring before they are read again has a gap before it: it is stale from now on.
    """
    write = buffer.life.write
    assert write is not None
    mine = {s: epoch for s, epoch in write.epochs.items() if epoch >= epochs.get(s, 0)}
    # A lane may be over because another target's write was given up: what waits of it here is still
    # of that assignment, and would go on as if the write had landed.
    behind = {s for s, epoch in write.epochs.items() if buffer.waits_of(s, epoch)}
    gone = [*buffer.give_up(frozenset(mine.keys() | behind))]
    if write.batch.path is not None:
        gone.append(write.batch.path)
    for source, epoch in mine.items():
        epochs[source] = epoch + 1
    fields = {"target": buffer.name, "rows": write.batch.rows, "read_again": sorted(map(str, mine))}
    out: list[fx.TargetEffect] = [fx.Log("warning", "write_given_up", fields)]
    if gone:
        out.append(fx.RemoveStaged(tuple(gone)))
    if mine:
        out.append(fx.Tell(fetcher, msg.Reread(mine)))
    return out


def as_staged(buffer: TargetBuffer, found: TargetState) -> TargetState:
    """What the target shows, but a lane whose mark is past what is staged of it keeps its mark.

    Another member has that lane by now, and this one has not heard of it yet. Its rows must be
    fenced by the mark that they were staged above: above the new one they would be written twice.
    """
    hwms, steps = dict(found.hwms), dict(found.steps)
    for file in buffer.staged_files:
        if found.hwms.get(file.source, NO_OFFSET) >= file.first:
            hwms[file.source] = buffer.hwm(file.source)
            steps.pop(file.source, None)  # nothing is staged of a lane inside a message
    return replace(found, hwms=hwms, steps=steps)


class Settlements:
    """Which revokes wait for this processor's writes."""

    def __init__(self, me: Address) -> None:
        self._me = me
        self._to = Address(me.pipeline, "settling")
        self._asked: list[msg.Settle] = []

    def ask(self, settle: msg.Settle) -> None:
        """Note that a revoke waits."""
        self._asked.append(settle)

    def answers(self, buffers: Iterable[TargetBuffer]) -> list[fx.TargetEffect]:
        """``Settled`` for each revoke whose writes have all ended. A write between two attempts is
        not under way: it was given up when the partitions went."""
        if not self._asked:
            return []
        flying = {
            source
            for buffer in buffers
            if (write := buffer.life.flying) is not None
            for source in write.epochs
        }
        done = [asked for asked in self._asked if flying.isdisjoint(asked.sources)]
        self._asked = [asked for asked in self._asked if asked not in done]
        return [fx.Tell(self._to, msg.Settled(self._me, asked.ticket)) for asked in done]
