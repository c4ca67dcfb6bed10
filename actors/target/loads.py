"""Targets that are being loaded: when the stream is kept, and what ends a load's attempt.

While a table is filled from the database its messages are kept in its spill. They are applied over
the loaded rows afterwards, and that is right for all changes but two. A statement that lies between
is shown by some of the rows and not by others. A change of a key that brings a part of the row
takes the rest from a stored row, which may be none. Both are recorded, and the load begins again
behind them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from actors.contract import effects as fx
from actors.contract import messages as msg
from actors.contract.addresses import Address
from actors.contract.figures import bare
from actors.contract.raw_messages import SpillState
from actors.target.buffer import TargetBuffer
from actors.target.pending import PendingShare
from actors.target.quarantine_state import Quarantine
from actors.target.unwritten import covered
from changes.formats.engine.format import Format
from changes.model.model import BadMessage, Ddl, TargetName
from changes.routes.routing import Router, shard_of
from offsets.position import TopicPartition
from offsets.rebuild import Load, LoadHindered


class Loads:
    """The loads of one processor's targets. Deterministic: it answers with effects."""

    def __init__(
        self, me: Address, format_: Format, router: Router, loads: Mapping[str, Load]
    ) -> None:
        """``loads``: by the name of the table that is filled."""
        self._committer = Address(me.pipeline, "committer")
        self._format = format_
        self._router = router
        self._loads = loads

    def adopt(self, buffer: TargetBuffer) -> None:
        """A buffer was made. While it is filled it keeps what comes, from the first message on."""
        load = self._loads.get(buffer.name)
        buffer.note_load(load)
        if load is None or buffer.quarantine is not None:
            return
        if load.filling or load.broken is not None:
            buffer.keep(Quarantine(f"it is being filled by job {load.job}", SpillState()))

    def look(self, buffer: TargetBuffer, chunk: PendingShare) -> list[fx.TargetEffect]:
        """Messages have come: one that the load can't go on over ends this attempt of it."""
        load = buffer.load
        assert load is not None
        last = chunk.messages.last
        if not chunk.ddl or not load.is_before_end(chunk.source, last):
            return []
        what = self._statement(buffer, chunk)
        if what is None:
            return []
        why = f"{chunk.source} offset {last}: {what} while the table is being loaded"
        return self.end(buffer, LoadHindered(why, {chunk.source: last}))

    def _statement(self, buffer: TargetBuffer, chunk: PendingShare) -> str | None:
        """What a message states of the table, None where that changes nothing it shows."""
        try:
            statements = self._format.ddl(chunk.messages.values[0])
        except BadMessage as error:
            return f"a statement that can't be read ({error})"
        for found in statements:
            if _changes(found) and buffer.route in self._router.targets(found.table):
                return f"a statement ({found.sql[:200]})"
        return None

    def moved(self, buffer: TargetBuffer, staged: msg.Staged) -> LoadHindered | None:
        """Why rows that are staged can't be written over the loaded ones."""
        load, closing = buffer.load, buffer.life.closing
        if load is None or closing is None or not staged.moves:
            return None
        stored = buffer.state.schema
        assert staged.schema is not None
        given = {column.name.lower() for column in staged.schema.columns}
        known = () if stored is None else (column.name.lower() for column in stored.columns)
        firsts = closing.firsts()
        early = [source for source, at in firsts.items() if load.is_before_end(source, at)]
        if not early or not (staged.partial or set(known) - given):
            return None
        behind = {part.lane.source: part.through for part in closing.parts} | closing.through
        places = ", ".join(f"{source} up to offset {at}" for source, at in sorted(behind.items()))
        return LoadHindered(
            f"{places}: a key is changed by a message without the whole row", behind
        )

    def give_up(self, buffer: TargetBuffer, bound: int) -> list[fx.TargetEffect]:
        """What is kept has come to its bound."""
        held = f"load.spill_bytes ({bound}) are not enough for what changes meanwhile"
        return self.end(buffer, LoadHindered(f"{buffer.name}: {held}"))

    def refused(self, buffer: TargetBuffer, reason: str) -> list[fx.TargetEffect] | None:
        """A table whose rows are all there is refused: its load ends, and says why. Nobody looks at
        a table that has no name yet. None: the target is not being loaded so far."""
        load = buffer.load
        if load is None or load.filling or load.broken is not None:
            return None
        return self.end(buffer, LoadHindered(bare(buffer.name, reason)))

    def end(self, buffer: TargetBuffer, why: LoadHindered) -> list[fx.TargetEffect]:
        """This attempt is over: the table gets nothing more, and what it has not counts as done."""
        load = buffer.load
        assert load is not None
        buffer.note_load(replace(load, broken=why))
        through, epochs = _held(buffer)
        spill = SpillState() if buffer.quarantine is None else buffer.quarantine.spill
        gone = buffer.quarantined(Quarantine(why.reason, spill), whole=True)
        out: list[fx.TargetEffect] = [fx.RemoveStaged(tuple(gone))] if gone else []
        # Before the acknowledgement: a start must know that the table is not whole.
        out.append(fx.Tell(self._committer, msg.LoadBroken(buffer.name, why)))
        done = msg.Written(buffer.route.name, epochs, through, None)
        return [*out, fx.Tell(self._committer, done)] if through else out

    def passed_over(self, buffer: TargetBuffer, chunk: PendingShare) -> list[fx.TargetEffect]:
        """What comes for a table whose load is to begin again counts as done."""
        through = {chunk.source: chunk.messages.last}
        buffer.tally.dropped(len(chunk.messages))
        done = msg.Written(buffer.route.name, {chunk.source: chunk.epoch}, through, None)
        return [fx.Tell(self._committer, done)]


def _changes(statement: Ddl) -> bool:
    said = statement.refused is not None or statement.unread is not None
    return said or bool(statement.steps or statement.redefined)


def _held(
    buffer: TargetBuffer,
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
    """How far each lane has come, with its epoch, all that waits included."""
    found = covered(buffer)
    quarantine = buffer.quarantine
    waiting = [] if quarantine is None else [*quarantine.waiting]
    for chunk in (*buffer.queue.chunks, *waiting):
        here = (chunk.epoch, chunk.messages.last)
        found[chunk.source] = max(here, found.get(chunk.source, here))
    if quarantine is not None:
        for source, last in quarantine.through.items():
            here = (quarantine.epochs[source], last)
            found[source] = max(here, found.get(source, here))
    kept = {source: place for source, place in found.items() if place[0] != msg.OF_SPILL}
    return (
        {source: last for source, (_, last) in kept.items()},
        {source: epoch for source, (epoch, _) in kept.items()},
    )


# Targets that wait, in a renaming, for a target in quarantine: they go into quarantine too.


class Awaited:
    """Asks, and answers, for one processor. Deterministic: it answers with effects."""

    def __init__(self, me: Address, processors: int) -> None:
        """``processors``: how many the pipeline has, this one among them."""
        self._me = me
        self._processors = processors

    def ask(self, buffer: TargetBuffer, other: TargetName) -> list[fx.TargetEffect]:
        """Ask whether the target that this one's write waits for is in quarantine."""
        write = buffer.life.write
        if write is None:
            return []
        owner = self._me._replace(number=shard_of(str(other), self._processors))
        batch_id = write.batch.batch_id
        return [fx.Tell(owner, msg.WaitsFor(buffer.route.name, other, batch_id, self._me))]

    def answer(
        self, asked: msg.WaitsFor, other: TargetBuffer | None, draining: bool
    ) -> list[fx.TargetEffect]:
        """Answer where the target is in quarantine, unless what is waited for may still be written:
        by a write under way, by a release that does not stop with the daemon, or once a sink that
        is away is back."""
        quarantine = None if other is None else other.quarantine
        if other is None or quarantine is None or other.life.write is not None:
            return []
        if quarantine.away:
            return []
        if quarantine.releasing and (quarantine.read_all or not draining):
            return []
        said = msg.InQuarantine(asked.target, asked.other, asked.batch_id)
        return [fx.Tell(asked.reply_to, said)]

    def reason(self, buffer: TargetBuffer, said: msg.InQuarantine) -> str | None:
        """Why the target goes into quarantine; None where it no longer waits with that write. A
        write that is being tried again will ask again."""
        write = buffer.life.waiting
        if write is None or write.batch.batch_id != said.batch_id:
            return None
        why = bare(buffer.name, buffer.tally.error or "waits for another target")
        return (
            f"{buffer.name}: {why}; {said.other} is in quarantine: once that is released, "
            "release this one, too"
        )
