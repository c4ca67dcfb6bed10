"""Targets that wait, in a renaming, for a target in quarantine: they go into quarantine too.

A quarantine must not hold up other targets. So a target that waits for another one's write asks
that one's processor at each attempt. Where the other one is in quarantine, the one that waits goes
there too, with its messages, and so do those that wait for it. Nothing is remembered between two
attempts, so a restart, or a release that begins or breaks off, needs no message about it.
"""

from __future__ import annotations

from actors.contract import effects as fx
from actors.contract import messages as msg
from actors.contract.addresses import Address
from actors.contract.figures import bare
from actors.processor.buffer import TargetBuffer
from changes.model import TargetName
from changes.routing import shard_of


class Awaited:
    """Asks, and answers, for one processor. Deterministic: it answers with effects."""

    def __init__(self, me: Address, processors: int) -> None:
        """``processors``: how many the pipeline has, this one among them."""
        self._me = me
        self._processors = processors

    def ask(self, buffer: TargetBuffer, other: TargetName) -> list[object]:
        """Ask whether the target that this one's write waits for is in quarantine."""
        write = buffer.life.write
        if write is None:
            return []
        owner = self._me._replace(number=shard_of(str(other), self._processors))
        batch_id = write.batch.batch_id
        return [fx.Tell(owner, msg.WaitsFor(buffer.route.name, other, batch_id, self._me))]

    def answer(
        self, asked: msg.WaitsFor, other: TargetBuffer | None, draining: bool
    ) -> list[object]:
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
