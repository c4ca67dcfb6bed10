"""Gathers the writes that bring a database's tables to a cut, so that they are one transaction.

Each target hands in its write as to a writer, and hears how it ended from the writer, as ever: it
knows nothing of the others. Here is only which writes belong together, and when all are there. A
write that does not reach the boundary goes ahead, as does what waits when the patience ends: one
that never comes, or that the others can't be written with, holds up nobody for longer.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from actors.contract import effects as fx
from actors.contract import messages as msg
from actors.contract.addresses import WRITERS, Address
from actors.runtime.backoff import RETRY_MAX_S
from changes.model.model import TargetName
from offsets.position import NO_OFFSET, TopicPartition

GIVEN_UP = "the cut that it waited for is given up"
STOPS = "the pipeline stops, and it would be written without others"

Pending = Mapping[str, Mapping[TopicPartition, int]]
"""As of ``CutAwaits``."""


@dataclass(frozen=True, slots=True)
class Together:
    """The sinks whose targets come to a cut in one transaction each. ``patience_s``: how long a
    write waits for the others', less than a cut takes. ``untagged``: those of them that keep no
    former versions."""

    sinks: frozenset[str] = frozenset()
    patience_s: float = 5.0
    untagged: frozenset[str] = frozenset()


APART = Together()
"""None: each target is written by itself."""


class Gathering:
    """One per pipeline; used by the thread of who makes cuts. Times are monotonic seconds."""

    def __init__(self, me: Address, together: Together) -> None:
        """``me``: who makes cuts."""
        self._me, self._sinks, self._patience_s = me, together.sinks, together.patience_s
        self._pending: Pending = {}
        self._epochs: dict[TopicPartition, int] = {}
        self._stops = False
        self._waiting: dict[str, msg.WriteBatch] = {}
        self._until: dict[str, float] = {}
        self._again: dict[str, set[str]] = {}
        self._failed: dict[str, tuple[str, float]] = {}
        # Of each sink: when its writes wait no more, which of them failed together, and the batch
        # for which they last did, with when it first was so.

    def take(self, write: msg.WriteBatch, now: float) -> list[fx.OwnTableEffect]:
        """A target's write is to come with the others'."""
        if (why := self._why_not(write)) is not None:
            return [_given_back(write, why)]
        self._waiting[str(write.batch.target)] = write
        self._until.setdefault(write.batch.target.sink, now + self._patience_s)
        return self._whole(now)

    def awaits(self, said: msg.CutAwaits, now: float) -> list[fx.OwnTableEffect]:
        """So much has still to be written before the boundary is reached."""
        if said.pending is None:
            return self._give_up(GIVEN_UP)
        self._pending = {n: ends for n, ends in said.pending.items() if _sink(n) in self._sinks}
        return self._whole(now)

    def stop(self) -> list[fx.OwnTableEffect]:
        """Nothing is written from now on but what the writers have: the log has the rest."""
        self._stops = True
        return self._give_up(STOPS)

    def forget(self, gone: msg.Forget) -> list[fx.OwnTableEffect]:
        """Partitions went away. Their next owner waits until no write of them is under way."""
        self._epochs |= dict.fromkeys(gone.sources, gone.epoch + 1)
        is_over = any(write.over(self._epochs) for write in self._waiting.values())
        return self._give_up(GIVEN_UP) if is_over else []

    def _why_not(self, write: msg.WriteBatch) -> str | None:
        """Why a write waits no more for others."""
        if self._stops:
            return STOPS
        return GIVEN_UP if write.over(self._epochs) else None

    def over(self) -> None:
        """The boundary is reached, or waited for no more: what comes from now on is the next
        one's."""
        self._pending = {}

    def not_together(self, said: msg.NotTogether, now: float) -> list[fx.OwnTableEffect]:
        """One failed: it hears so, and the others wait for it to come again. Where it is no single
        one's fault, each is written by itself, and hears its own. Where no connection can be made
        no other could be written: then they wait for as long as that may take."""
        failed = said.failed
        target = None if failed is None else failed.target
        others = [write for write in said.writes if write.batch.target != target]
        fields = {"reason": said.reason, "targets": len(said.writes)}
        level = "warning" if failed is None else "info"
        out: list[fx.OwnTableEffect] = [fx.Log(level, "not_written_together", fields)]
        out += [fx.Tell(w.reply_to, failed) for w in said.writes if w.batch.target == target]
        if (why := next(filter(None, map(self._why_not, others)), None)) is not None:
            return [*out, *(_given_back(write, why) for write in others)]
        if target is None:
            return [*out, *(fx.Tell(WRITERS, write) for write in others)]
        self._waiting |= {str(write.batch.target): write for write in others}
        self._again[target.sink] = {str(write.batch.target) for write in said.writes}
        self._until[target.sink] = self._patient_until(said, target, now)
        return out + self._whole(now)

    def _patient_until(self, said: msg.NotTogether, target: TargetName, now: float) -> float:
        """Of one write that fails again and again the first time counts."""
        if said.away:
            return now + RETRY_MAX_S + self._patience_s
        (batch,) = (write.batch for write in said.writes if write.batch.target == target)
        if self._failed.get(target.sink, ("", now))[0] != batch.batch_id:
            self._failed[target.sink] = batch.batch_id, now
        return self._failed[target.sink][1] + self._patience_s

    def due(self, now: float) -> list[fx.OwnTableEffect]:
        """What waits in vain is written without the others."""
        out: list[fx.OwnTableEffect] = []
        for sink in sorted(sink for sink, until in self._until.items() if until <= now):
            wanted = {name for name in self._pending if _sink(name) == sink}
            here = self._here(sink)
            missing = sorted((wanted | self._again.pop(sink, set())).difference(here))
            fields = {"targets": here, "without": missing}
            out += [fx.Log("warning", "written_without_others", fields), *self._send(sink, here)]
        wakes = [fx.WakeAt(min(self._until.values()))] if self._until else []
        return [*out, *wakes]

    def _whole(self, now: float) -> list[fx.OwnTableEffect]:
        """Send what is complete: of each sink all of it at once. So goes, too, what failed together
        once all of it has come again, whichever cut is waited for now."""
        out: list[fx.OwnTableEffect] = []
        for sink in [*self._until]:
            if (again := self._again.get(sink)) and again <= self._waiting.keys():
                out += self._send(sink, again)
            kept = self._again.get(sink, set())
            ahead = [n for n in self._here(sink) if n not in kept and self._falls_short(n)]
            out += [fx.Log("info", "written_ahead", {"target": name}) for name in ahead]
            out += self._send(sink, ahead)
            wanted = {name for name in self._pending if _sink(name) == sink}
            if wanted and wanted <= self._waiting.keys():
                out += self._send(sink, wanted)
        return out + self.due(now)

    def _falls_short(self, name: str) -> bool:
        """Whether more is to come of a target before the boundary."""
        through = self._waiting[name].through
        ends = self._pending.get(name, {})
        return any(through.get(source, NO_OFFSET) < at for source, at in ends.items())

    def _here(self, sink: str) -> list[str]:
        return sorted(name for name in self._waiting if _sink(name) == sink)

    def _send(self, sink: str, names: Collection[str]) -> list[fx.OwnTableEffect]:
        """To the writers, as one."""
        writes = [self._waiting.pop(name) for name in sorted(names)]
        if not self._again.get(sink, set()).isdisjoint(names):
            del self._again[sink]
        if not self._here(sink):
            self._until.pop(sink, None)
        return [fx.Tell(WRITERS, self._as_one(writes))] if writes else []

    def _as_one(self, writes: list[msg.WriteBatch]) -> msg.WriteBatch | msg.WriteTogether:
        """With half of the patience for a lock: the others then go without it in time."""
        if len(writes) == 1:
            return writes[0]
        return msg.WriteTogether(tuple(writes), self._me, self._patience_s / 2)

    def _give_up(self, why: str) -> list[fx.OwnTableEffect]:
        """Who still has its partitions offers its write again."""
        waiting, self._waiting = self._waiting, {}
        self._pending, self._until, self._again = {}, {}, {}
        return [_given_back(write, why) for write in waiting.values()]


def _given_back(write: msg.WriteBatch, why: str) -> fx.Tell:
    """It is no fault of anybody's."""
    return fx.Tell(write.reply_to, msg.Failed(write.batch.target, msg.FailureKind.RACED, why))


def _sink(target: str) -> str:
    return target.split(".")[0]
