"""Retries: a write, an opening or a staging that failed is tried again, each target by itself.

The target's changes pile up meanwhile, and other targets go on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from actors.contract import effects as fx
from actors.contract import messages as msg
from actors.contract.addresses import WRITERS, Address
from actors.runtime.backoff import Waits
from actors.target.buffer import TargetBuffer

RACES_AT_ONCE = 8
"""Lost races after which a target counts as unavailable. Each loss is another member's success;
fewer would let a busy neighbour slow a target down, more would hide a catalog that never yields."""

COUNT_KNOWN_S = 15.0
"""How long a record that is not in its key's partition may wait: more partitions may be there than
are known. Sources look every 5 s; shorter than two looks refuses tables for nothing."""

Via = tuple[Address | None, list[fx.TargetEffect]]
"""Who has a write written with others, if it is, and what is to be said of that."""

RACE_WAIT_S = 0.05
"""After the first lost race, growing by as much: about what a small commit takes."""


class Attempts:
    """Says when one processor's targets try again. Deterministic: it answers with effects."""

    def __init__(
        self, me: Address, base_s: float, max_s: float, jitter: Callable[[], float]
    ) -> None:
        """The first wait is ``base_s`` seconds, it doubles up to ``max_s``; ``jitter`` gives 0..1
        and takes up to half of it away."""
        self._me = me
        self._jitter = jitter
        self._waits = Waits(base_s, max_s, jitter)

    def failed(self, buffer: TargetBuffer, reason: str, now: float) -> fx.Log:
        """A write, or an opening, failed in a way that may pass: schedule a retry."""
        buffer.tally.failed(reason, now)
        attempt = buffer.life.failed()
        wait = self._waits.after(attempt)
        buffer.life.schedule_retry(now + wait)
        return _retry_log(buffer, "sink_unavailable", reason, attempt, wait)

    def waits(self, buffer: TargetBuffer, reason: str, now: float) -> fx.Log:
        """Another target's write comes first: logged once at info, because nothing is wrong."""
        said = buffer.tally.lasting and buffer.tally.error == reason
        log = self.failed(buffer, reason, now)
        return fx.Log("debug" if said else "info", "waits_for_name", log.fields)

    def raced(self, buffer: TargetBuffer, reason: str, now: float) -> fx.Log:
        """Another member published first: retried at once, unless that happens too often."""
        if buffer.life.races >= RACES_AT_ONCE:
            return self.failed(buffer, reason, now)
        wait = RACE_WAIT_S * buffer.life.lost_race() * (0.5 + self._jitter() / 2)
        buffer.life.schedule_retry(now + wait)
        return fx.Log("debug", "race_lost", {"target": buffer.name, "retry_in_s": wait})

    def stage_failed(
        self, buffer: TargetBuffer, failed: msg.StageFailed, now: float
    ) -> fx.Log | msg.Staged:
        """The disk did not take a staged file: schedule a retry. What stays in another partition
        than its key's is refused."""
        reason = failed.reason
        if failed.elsewhere and now - buffer.note_elsewhere(now) >= COUNT_KNOWN_S:
            return msg.Staged(failed.target, not_by_key=reason)
        buffer.tally.failed(reason, now)
        attempt = buffer.life.stage_failed()
        wait = self._waits.after(attempt)
        buffer.life.schedule_restage(now + wait)
        return _retry_log(buffer, "stage_failed", reason, attempt, wait)

    def due(
        self,
        buffers: Iterable[TargetBuffer],
        stage: Callable[[TargetBuffer], fx.Stage],
        now: float,
    ) -> list[fx.TargetEffect]:
        """The retries whose time has come."""
        out: list[fx.TargetEffect] = []
        for buffer in buffers:
            life = buffer.life
            if life.restage_at is not None and life.restage_at <= now:
                life.stage_now()
                out.append(stage(buffer))
            if life.retry_at is None or life.retry_at > now:
                continue
            life.retry_now()
            if life.write is not None:
                out.append(offered(life.write))
            else:
                out.append(fx.Tell(WRITERS, buffer.opening(self._me)))
        return out


def offered(write: msg.WriteBatch) -> fx.Tell:
    """A write on its way: to the writers, or to who has it written with others."""
    return fx.Tell(write.gatherer or WRITERS, write)


def _retry_log(buffer: TargetBuffer, event: str, reason: str, attempt: int, wait: float) -> fx.Log:
    fields = {
        "target": buffer.name,
        "reason": reason,
        "attempt": attempt,
        "retry_in_s": round(wait, 3),
    }
    return fx.Log("warning", event, fields)
