"""Release of a target: its spill is replayed in order, then its quarantine is over.

``quarantine`` drives it, page by page, and breaks it off.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from actors.contract import effects as fx
from actors.contract import messages as msg
from actors.contract.addresses import WRITERS, Address
from actors.contract.messages import OF_SPILL
from actors.contract.raw_messages import Messages, SpillRecord
from actors.target.buffer import TargetBuffer
from actors.target.pending import PendingShare
from changes.model.model import TableName
from offsets.position import TopicPartition
from settings.counted import counted


class Releases:
    """Makes one processor's releases. Deterministic: it answers with effects."""

    def __init__(self, me: Address) -> None:
        self._me = me
        self._committer = Address(me.pipeline, "committer")

    def begin(self, buffer: TargetBuffer, draining: bool) -> list[fx.TargetEffect]:
        """Begin to replay, if that can be now; the answer says."""
        quarantine = buffer.quarantine
        if quarantine is None:
            return [fx.Reply(msg.RetryAnswer(False, f"{buffer.name} is not in quarantine"))]
        if buffer.load is not None and (buffer.load.filling or buffer.load.broken is not None):
            line = f"{buffer.name}: {quarantine.reason}: its job says when it goes on"
            return [fx.Reply(msg.RetryAnswer(False, line))]
        if quarantine.away:
            return [fx.Reply(msg.RetryAnswer(False, f"{buffer.name} {msg.GOES_ON_ALONE}"))]
        if quarantine.releasing:
            return [fx.Reply(msg.RetryAnswer(False, f"{buffer.name} is being released already"))]
        if draining or not buffer.life.releasable:
            what = "an opening" if buffer.life.write is None else "a write"
            why = "the daemon is stopping" if draining else f"{what} of it has not ended yet"
            return [fx.Reply(msg.RetryAnswer(False, f"{buffer.name}: {why}"))]
        if quarantine.rereads:
            # They come before all that waits in memory; without them the replay has a hole.
            line = f"{buffer.name}: its spill could not be written yet"
            return [fx.Reply(msg.RetryAnswer(False, line))]
        spill = quarantine.spill
        held = f"{counted(spill.messages, 'spilled message')} ({spill.bytes} bytes)"
        said = f"{buffer.name}: replaying {held}"
        return [fx.Reply(msg.RetryAnswer(True, said)), *self._begin(buffer)]

    def of_load(self, buffer: TargetBuffer, draining: bool) -> list[fx.TargetEffect]:
        """Begin once by itself when all rows of the database are there: if it is refused, the load
        ends."""
        quarantine, load = buffer.quarantine, buffer.load
        if quarantine is None or load is None or load.filling or load.broken is not None:
            return []
        if draining or not quarantine.fresh or not buffer.life.releasable:
            return []
        quarantine.tried()
        return self._begin(buffer)

    def of_away(self, buffer: TargetBuffer, draining: bool) -> list[fx.TargetEffect]:
        """Begin by itself where the sink was away: it is opened again and again until it answers.
        What has to be read again from the log comes first."""
        quarantine = buffer.quarantine
        if quarantine is None or not quarantine.away or quarantine.releasing or draining:
            return []
        if quarantine.rereads or quarantine.busy or not buffer.life.releasable:
            return []
        return self._begin(buffer)

    def _begin(self, buffer: TargetBuffer) -> list[fx.TargetEffect]:
        quarantine = buffer.quarantine
        assert quarantine is not None
        quarantine.begin_release()
        opening = buffer.look(self._me)
        fields = {"target": buffer.name, "messages": quarantine.spill.messages}
        return [
            *([] if quarantine.away else [fx.Log("info", "release_begun", fields)]),
            fx.Tell(WRITERS, opening),
        ]

    def passed(self, buffer: TargetBuffer, epochs: Mapping[TopicPartition, int]) -> str | None:
        """Why the spill can't be replayed: another member wrote younger changes of its lanes.
        ``epochs``: of the partitions that are assigned.

        A sink that was away had nothing to refuse. Its spill may have been begun below the marks,
        which were not known, and beside a write that landed: what the marks hold is dropped. That
        stays so where the sink came back and then refused what the spill has. A lane that is read
        again from before its spill, as after a crash, was spilled below the marks as well.
        """
        quarantine = buffer.quarantine
        if quarantine is None or quarantine.begun_away:
            return None
        for source, (first, last) in quarantine.spill.lanes.items():
            again = buffer.history.is_fed_from(source, epochs.get(source), first)
            if buffer.hwm(source) > last and not again:
                return (
                    f"{buffer.name} holds {source} through {buffer.hwm(source)}, beyond its spill "
                    f"({first}..{last}): another member wrote it meanwhile, so the "
                    "spill can't be replayed in order"
                )
        return None

    def replayed(self, buffer: TargetBuffer, read: msg.SpillRead, now: float) -> None:
        """A page of the spill: it goes the way of all messages, and is acknowledged already."""
        quarantine = buffer.quarantine
        assert quarantine is not None
        quarantine.read_to(read.position)
        records: list[SpillRecord] = []
        for record in read.records:
            same = records and _kind(records[0]) == _kind(record) and not record.ddl
            if records and not same:
                buffer.add(_chunk(records, now))
                records.clear()
            records.append(record)
        if records:
            buffer.add(_chunk(records, now))

    def ended(self, buffer: TargetBuffer) -> list[fx.TargetEffect]:
        """The spill is written, and gone: what waited follows it."""
        quarantine = buffer.released()
        fields = {"target": buffer.name, "messages": quarantine.spill.messages}
        return [
            fx.Tell(self._committer, msg.SpillListed(buffer.name, None)),
            fx.Log("info", "back" if quarantine.away else "released", fields),
        ]


def _chunk(records: Sequence[SpillRecord], now: float) -> PendingShare:
    """Records of one lane: rows, or a single barrier."""
    offsets = [record.offset for record in records]
    messages = Messages.of(offsets, [record.value for record in records])
    first = records[0]
    return PendingShare(first.source, OF_SPILL, messages, first.ddl, now, table=first.table)


def _kind(record: SpillRecord) -> tuple[TopicPartition, bool, TableName | None]:
    """What the records of a chunk have in common."""
    return record.source, record.ddl, record.table
