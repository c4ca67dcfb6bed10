"""Quarantine: a target that its sink refuses holds up no other, and loses nothing.

Its raw messages, from the first unwritten one on, go to a spill on disk and count as done once
they are there. A release replays the spill through the normal way of a change, in order, before
anything younger; the target's marks drop what of it was written already, so a release that breaks
off is simply started again. While it runs, new messages are spilled too, until the replay has come
to the end of the spill: the rest waits in memory for the last write of it.
"""

from __future__ import annotations

from collections.abc import Mapping

from actors.contract import effects as fx
from actors.contract import messages as msg
from actors.contract.addresses import Address
from actors.contract.figures import bare
from actors.contract.raw_messages import SpillRecord, SpillState
from actors.runtime.backoff import Waits
from actors.target.buffer import TargetBuffer
from actors.target.loads import Loads
from actors.target.pending import PendingShare
from actors.target.quarantine_state import Quarantine
from actors.target.settings import ProcessorSettings
from actors.target.target_state import Phase
from actors.target.unwritten import covered, no_more_at_hand
from offsets.position import NO_OFFSET, TopicPartition
from offsets.snapshot import SpillMark

BETWEEN_PIECES_S = 0.01
"""Between two pieces of the log that are read again: the other targets have their turn."""


class Quarantines:
    """Makes one processor's quarantines. Deterministic: it answers with effects."""

    def __init__(self, me: Address, loads: Loads, settings: ProcessorSettings) -> None:
        self._me = me
        self._loads = loads
        self._committer = Address(me.pipeline, "committer")
        self._supervisor = Address(me.pipeline, "supervisor")
        self._settings = settings

    # --- into it

    def begin(
        self,
        buffer: TargetBuffer,
        reason: str,
        epochs: Mapping[TopicPartition, int],
        now: float,
        *,
        away: bool = False,
    ) -> list[fx.TargetEffect]:
        """Spill what is held from the first unwritten message on, of lanes that are still ours:
        ``epochs`` are the present ones. ``away``: its sink does not answer.
        A write that is in flight goes on; if it lands, the marks drop its part of the replay.
        """
        rereads = tuple(
            fx.LogRange(source, first, last)
            for source, epoch, first, last in no_more_at_hand(buffer)
            if epochs.get(source) == epoch
        )
        quarantine = Quarantine(reason, SpillState(), rereads=rereads, away=away, since=now)
        for source, (epoch, last) in covered(buffer).items():
            if epochs.get(source) == epoch:
                quarantine.note_done(source, epoch, last)
        closing = buffer.life.closing
        closed = () if closing is None else closing.chunks(now)
        for chunk in (*closed, *buffer.queue.chunks):
            if epochs.get(chunk.source) != chunk.epoch:
                continue
            # Not what the target has: a release would find its mark beyond the spill.
            fresh = chunk.above(buffer.hwm(chunk.source))
            if fresh is not None:
                quarantine.take(fresh)
            else:
                quarantine.note_done(chunk.source, chunk.epoch, chunk.messages.last)
        gone = buffer.quarantined(quarantine)
        buffer.tally.failed(reason, now)
        fields = {"target": buffer.name, "reason": reason}
        out: list[fx.TargetEffect] = [fx.RemoveStaged(tuple(gone))] if gone else []
        said = ("warning", "away") if away else ("error", "quarantined")
        return [*out, fx.Log(*said, fields), *self._spill(buffer, now)]

    def relapse(
        self, buffer: TargetBuffer, reason: str, now: float, *, refused: bool = True
    ) -> list[fx.TargetEffect]:
        """A release broke off: the spill is whole, the target's marks say what of it is written.

        ``refused``: a person has to find out why, also where the sink was only away until now.
        """
        quarantine = buffer.quarantine
        assert quarantine is not None
        gone = buffer.quarantined(quarantine, whole=True)
        quarantine.break_off(reason, refused=refused)
        buffer.tally.failed(reason, now)
        fields = {"target": buffer.name, "reason": reason}
        out: list[fx.TargetEffect] = [fx.RemoveStaged(tuple(gone))] if gone else []
        level = "warning" if quarantine.away else "error"
        said = fx.Log(level, "release_broke_off", fields)
        return [*out, said, *self._list(buffer, quarantine)]

    def take(self, buffer: TargetBuffer, chunk: PendingShare) -> list[fx.TargetEffect]:
        """What comes for it: to be spilled, unless spill or target has it (it is read again)."""
        quarantine = buffer.quarantine
        assert quarantine is not None
        if buffer.load is not None and buffer.load.broken is not None:
            return self._loads.passed_over(buffer, chunk)
        spilled = quarantine.spill.lanes.get(chunk.source, (NO_OFFSET, NO_OFFSET))[1]
        fresh = chunk.above(max(spilled, buffer.hwm(chunk.source)))
        held = 0 if fresh is None else len(fresh.messages)
        buffer.tally.replayed(len(chunk.messages) - held)
        if fresh is not None:
            quarantine.take(fresh)
            return []
        through = {chunk.source: chunk.messages.last}
        done = msg.Written(buffer.route.name, {chunk.source: chunk.epoch}, through, None)
        # A crash may have come between the spill and its listing.
        return [*self._list(buffer, quarantine), fx.Tell(self._committer, done)]

    def forget(
        self, buffer: TargetBuffer, sources: frozenset[TopicPartition], now: float
    ) -> list[fx.TargetEffect]:
        """Partitions went away: what is spilled stays, what waits is read again."""
        quarantine = buffer.quarantine
        assert quarantine is not None
        quarantine.forget(sources)
        replaying = quarantine.releasing and not quarantine.ending
        if not replaying or sources.isdisjoint(quarantine.spill.lanes):
            return []
        # Messages of the spill may have been dropped with the partition: the replay starts again.
        why = "partitions were taken away during the release"
        if buffer.load is not None:
            quarantine.untried()
        return self.relapse(buffer, why, now, refused=not quarantine.away)

    # --- on disk

    def advance(self, buffer: TargetBuffer, now: float, draining: bool) -> list[fx.TargetEffect]:
        """Spill, replay or end it, whatever is due."""
        quarantine = buffer.quarantine
        assert quarantine is not None
        if buffer.life.phase is Phase.STOPPED or quarantine.busy:
            return []
        if draining and quarantine.attempts and not quarantine.ending:
            quarantine.fill()  # a disk that is full may stay so for longer than a stop may take
        if draining and quarantine.full and quarantine.waiting:
            return _drop_waiting(buffer, quarantine)
        if quarantine.dropped:
            return []  # nothing may follow the gap: it stays as it is until the next start
        if quarantine.retry_at is not None and now < quarantine.retry_at:
            return []
        if self._spill_due(buffer, quarantine, now, draining):
            return self._spill(buffer, now)
        if not (quarantine.releasing and buffer.life.phase is Phase.READY and buffer.settled):
            return []
        quarantine.try_again(None)
        name, position = buffer.route.name, quarantine.position
        assert position is not None
        if quarantine.read_all:
            quarantine.ask_end()
            return [fx.EndSpill(name)]
        if draining:
            return []
        quarantine.ask()
        return [fx.ReadSpill(name, position, self._settings.batch_bytes)]

    def due_at(self, buffer: TargetBuffer, draining: bool = False) -> float | None:
        """When there is something to do without a message; None: not by itself."""
        quarantine = buffer.quarantine
        if quarantine is None or quarantine.broken or quarantine.dropped:
            return None
        if buffer.life.phase is Phase.STOPPED:
            return None
        if quarantine.retry_at is not None:
            return quarantine.retry_at
        ready = buffer.life.phase is Phase.READY and buffer.settled
        if quarantine.releasing and ready and (quarantine.read_all or not draining):
            # A page that held replays alone has no write whose end would go on.
            return 0.0
        if not quarantine.waiting or _follows(buffer, quarantine) or quarantine.full:
            return None
        return quarantine.waiting[0].since + self._settings.batch_age_s

    def _spill_due(
        self, buffer: TargetBuffer, quarantine: Quarantine, now: float, draining: bool
    ) -> bool:
        settings = self._settings
        if quarantine.idle or quarantine.ending:
            return False
        size = quarantine.waiting_bytes
        if _follows(buffer, quarantine) and size < settings.batch_bytes and not draining:
            return False
        first = quarantine.waiting[0].since if quarantine.waiting else now
        retrying = quarantine.retry_at is not None or bool(quarantine.rereads)
        aged = now >= first + settings.batch_age_s or size >= settings.batch_bytes
        return draining or retrying or aged or not quarantine.waiting

    def _bound(self, buffer: TargetBuffer, quarantine: Quarantine) -> int:
        if buffer.load is not None:
            return self._settings.load_spill_bytes
        return (
            self._settings.away_spill_bytes if quarantine.away else self._settings.quarantine_bytes
        )

    def _spill(self, buffer: TargetBuffer, now: float) -> list[fx.TargetEffect]:
        quarantine = buffer.quarantine
        assert quarantine is not None
        quarantine.try_again(None)
        load, bound = buffer.load, self._bound(buffer, quarantine)
        if quarantine.spill.bytes + quarantine.waiting_bytes > bound and not quarantine.rereads:
            if load is not None:
                return self._loads.give_up(buffer, bound)
            stop = self._me.pipeline if self._settings.quarantine_full_stops else None
            return [_full(buffer, quarantine, bound, stop)]
        if quarantine.idle:
            return []
        name, reason, away = buffer.route.name, quarantine.reason, quarantine.away
        pieces = quarantine.next_rereads(self._settings.reread_offsets if away else None)
        if quarantine.left_to_reread:
            quarantine.ask(now + BETWEEN_PIECES_S)
            return [fx.Spill(name, reason, pieces, (), away)]
        quarantine.ask()
        records = tuple(
            SpillRecord(chunk.source, offset, chunk.ddl, value)
            for chunk in quarantine.waiting
            for offset, value in zip(chunk.messages.offsets, chunk.messages.values, strict=True)
        )
        return [fx.Spill(name, reason, pieces, records, away)]

    def spilled(self, buffer: TargetBuffer, state: SpillState) -> list[fx.TargetEffect]:
        """All that waited is on disk: listed, then done."""
        quarantine = buffer.quarantine
        assert quarantine is not None
        begun = not quarantine.spill.messages and state.messages > 0
        through, epochs = quarantine.spilled(state)
        out = self._list(buffer, quarantine)
        if begun:
            fields = {"target": buffer.name, "messages": state.messages, "bytes": state.bytes}
            out.append(fx.Log("info", "spilling", fields))
        if through:
            done = msg.Written(buffer.route.name, epochs, through, None)
            out.append(fx.Tell(self._committer, done))
        return out

    def _list(self, buffer: TargetBuffer, quarantine: Quarantine) -> list[fx.TargetEffect]:
        state = quarantine.spill
        mark = SpillMark(state.bytes, dict(state.lanes), quarantine.away)
        return [fx.Tell(self._committer, msg.SpillListed(buffer.name, mark))] if state.lanes else []

    def failed(
        self, buffer: TargetBuffer, failed: msg.SpillFailed, now: float
    ) -> list[fx.TargetEffect]:
        """The disk, or the broker, did not do it: again later; ``lasting``: it never will."""
        quarantine = buffer.quarantine
        assert quarantine is not None
        if failed.lasting:
            quarantine.fill(broken=True)  # so the end need not wait for it
            reason = f"{buffer.name}: its spill is not whole: {failed.reason}"
            return [fx.Tell(self._supervisor, msg.PipelineFailed(self._me.pipeline, reason))]
        settings = self._settings
        wait = Waits(settings.retry_base_s, settings.retry_max_s).after(quarantine.failed())
        quarantine.try_again(now + wait)
        fields = {"target": buffer.name, "reason": failed.reason, "retry_in_s": round(wait, 3)}
        return [fx.Log("warning", "spill_failed", fields)]


def _full(
    buffer: TargetBuffer, quarantine: Quarantine, bound: int, stop: str | None
) -> fx.TargetEffect:
    """Its messages wait from here on. ``stop``: the pipeline that stops for a quarantine then."""
    quarantine.fill()
    why = bare(buffer.name, quarantine.reason)
    if quarantine.away:
        fields = {"target": buffer.name, "bytes": bound, "reason": why}
        return fx.Log("error", "away_spill_full", fields)
    if stop is None:
        return fx.Log("error", "quarantine_full", {"target": buffer.name, "bytes": bound})
    reason = f"{buffer.name}: its quarantine is full ({bound} bytes): {why}"
    return fx.Tell(Address(stop, "supervisor"), msg.PipelineFailed(stop, reason))


def _drop_waiting(buffer: TargetBuffer, quarantine: Quarantine) -> list[fx.TargetEffect]:
    """At a stop nothing waits for room: what is not in the spill holds the frontier, and is read
    again. Kept, it would hold what others still have to be given."""
    messages, first = quarantine.drop_waiting()
    buffer.tally.dropped(messages)
    if not first:
        return []
    what = "its spill" if quarantine.away else "its quarantine"
    fields = {"target": buffer.name, "messages": messages, "reason": f"{what} takes no more"}
    return [fx.Log("warning", "left_for_the_next_start", fields)]


def _follows(buffer: TargetBuffer, quarantine: Quarantine) -> bool:
    """Whether the replay is nearly over, and what waits follows it without a detour. Not where the
    sink lets itself be read and takes no write."""
    return quarantine.read_all and not (quarantine.away and buffer.life.attempts > 1)
