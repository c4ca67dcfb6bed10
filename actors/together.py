"""Gathers the writes that bring a database's tables to a cut, so that they are one transaction.

Each target hands in its write as to a writer, and hears how it ended from the writer, as ever: it
knows nothing of the others. Here is only which writes belong together, and when all are there. A
write that does not reach the boundary goes ahead, as does what waits when the patience ends: one
that never comes, or that the others can't be written with, holds up nobody for longer.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from actors.contract import effects as fx
from actors.contract import messages as msg
from actors.contract.addresses import WRITERS, Address
from offsets.position import NO_OFFSET, TopicPartition

GIVEN_UP = "the cut that it waited for is given up"

Pending = Mapping[str, Mapping[TopicPartition, int]]
"""As of ``CutAwaits``."""


class Gathering:
    """One per pipeline; used by the thread of who makes cuts. Times are monotonic seconds."""

    def __init__(self, me: Address, sinks: Collection[str], patience_s: float) -> None:
        """``sinks``: whose targets are written together. ``patience_s``: how long a write waits for
        the others, less than a cut takes."""
        self._me, self._sinks, self._patience_s = me, sinks, patience_s
        self._pending: Pending = {}
        self._waiting: dict[str, msg.WriteBatch] = {}
        self._since: float | None = None

    def take(self, write: msg.WriteBatch, now: float) -> list[fx.OwnTableEffect]:
        """A target's write is to come with the others'."""
        self._waiting[str(write.batch.target)] = write
        if self._since is None:
            self._since = now
        return self._whole(now)

    def awaits(self, said: msg.CutAwaits, now: float) -> list[fx.OwnTableEffect]:
        """So much has still to be written before the boundary is reached."""
        if said.pending is None:
            return self._give_up()
        self._pending = {n: ends for n, ends in said.pending.items() if _sink(n) in self._sinks}
        return self._whole(now)

    def over(self) -> None:
        """The boundary is reached, or waited for no more: what comes from now on is the next
        one's."""
        self._pending = {}

    def not_together(self, said: msg.NotTogether, now: float) -> list[fx.OwnTableEffect]:
        """One failed: it hears so, and the others wait for it to come again. Where it is no single
        one's fault, each is written by itself, and hears its own."""
        failed = said.failed
        fields = {"reason": said.reason, "targets": len(said.writes)}
        if failed is None:
            alone = [fx.Tell(WRITERS, write) for write in said.writes]
            return [fx.Log("warning", "not_written_together", fields), *alone]
        out: list[fx.OwnTableEffect] = [fx.Log("info", "not_written_together", fields)]
        for write in said.writes:
            if write.batch.target == failed.target:
                out.append(fx.Tell(write.reply_to, failed))
            else:
                out += self.take(write, now)
        return out

    def due(self, now: float) -> list[fx.OwnTableEffect]:
        """What waits in vain is written without the others."""
        if self._since is None:
            return []
        if now < self._since + self._patience_s:
            return [fx.WakeAt(self._since + self._patience_s)]
        missing = sorted(self._pending.keys() - self._waiting.keys())
        fields = {"targets": sorted(self._waiting), "without": missing}
        return [fx.Log("warning", "written_without_others", fields), *self._send(self._waiting)]

    def _whole(self, now: float) -> list[fx.OwnTableEffect]:
        """Send what is complete: of each sink all of it at once."""
        out: list[fx.OwnTableEffect] = []
        for name, write in [*self._waiting.items()]:
            ends = self._pending.get(name, {})
            if any(write.through.get(source, NO_OFFSET) < at for source, at in ends.items()):
                del self._waiting[name]
                out += [fx.Log("info", "written_ahead", {"target": name}), fx.Tell(WRITERS, write)]
        for sink in sorted(set(map(_sink, self._pending))):
            wanted = {name for name in self._pending if _sink(name) == sink}
            if wanted <= self._waiting.keys():
                out += self._send(wanted)
        return out + self.due(now)

    def _send(self, names: Collection[str]) -> list[fx.OwnTableEffect]:
        """To the writers, those of one sink as one."""
        sinks: dict[str, list[msg.WriteBatch]] = {}
        for name in sorted(names):
            sinks.setdefault(_sink(name), []).append(self._waiting.pop(name))
        self._since = None if not self._waiting else self._since
        return [fx.Tell(WRITERS, _as_one(writes, self._me)) for writes in sinks.values()]

    def _give_up(self) -> list[fx.OwnTableEffect]:
        """Partitions went away: who still has some offers its write again."""
        waiting, self._waiting, self._pending, self._since = self._waiting, {}, {}, None
        retry = msg.FailureKind.RETRY
        return [
            fx.Tell(write.reply_to, msg.Failed(write.batch.target, retry, GIVEN_UP))
            for write in waiting.values()
        ]


def _as_one(writes: list[msg.WriteBatch], gatherer: Address) -> msg.WriteBatch | msg.WriteTogether:
    return writes[0] if len(writes) == 1 else msg.WriteTogether(tuple(writes), gatherer)


def _sink(target: str) -> str:
    return target.split(".")[0]
