"""What goes into a spill and what waits: at its bound, at a stop, at the end of its replay."""

from __future__ import annotations

from actors.contract import effects as fx
from actors.contract import messages as msg
from actors.contract.addresses import Address
from actors.contract.figures import bare
from actors.target.buffer import TargetBuffer
from actors.target.quarantine_state import Quarantine


def full(
    buffer: TargetBuffer, quarantine: Quarantine, bound: int, stop: str | None
) -> fx.TargetEffect:
    """Its messages wait from here on. ``stop``: the pipeline that stops for a quarantine then."""
    quarantine.full = True
    why = bare(buffer.name, quarantine.reason)
    if quarantine.away:
        fields = {"target": buffer.name, "bytes": bound, "reason": why}
        return fx.Log("error", "away_spill_full", fields)
    if stop is None:
        return fx.Log("error", "quarantine_full", {"target": buffer.name, "bytes": bound})
    reason = f"{buffer.name}: its quarantine is full ({bound} bytes): {why}"
    return fx.Tell(Address(stop, "supervisor"), msg.PipelineFailed(stop, reason))


def drop_waiting(buffer: TargetBuffer, quarantine: Quarantine) -> list[fx.TargetEffect]:
    """At a stop nothing waits for room: what is not in the spill holds the frontier, and is read
    again. Kept, it would hold what others still have to be given."""
    messages = sum(len(chunk.messages) for chunk in quarantine.waiting)
    buffer.tally.messages_dropped += messages
    quarantine.waiting.clear()
    if quarantine.dropped:
        return []
    quarantine.dropped = True
    what = "its spill" if quarantine.away else "its quarantine"
    fields = {"target": buffer.name, "messages": messages, "reason": f"{what} is full"}
    return [fx.Log("warning", "left_for_the_next_start", fields)]


def follows(buffer: TargetBuffer, quarantine: Quarantine) -> bool:
    """Whether the replay is nearly over, and what waits follows it without a detour. Not where the
    sink lets itself be read and takes no write."""
    return quarantine.read_all and not (quarantine.away and buffer.life.attempts > 1)
